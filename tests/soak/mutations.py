"""Ways to spoil a file, drawn by hypothesis: blindly, and with knowledge of what is in it."""

import copy
import io
import json
import struct
import zipfile

from hypothesis import strategies as st

# numbers that a header may lie with: ends of integer types, and sizes that no memory holds
LIES = [0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1]
SNIPPETS = [
    b"\x00",
    b"\xff" * 8,
    b"\n",
    b'"',
    b"{",
    b"[" * 2000,
    b"../",
    b",",
    b"9" * 5000,
    b"\x80",
]


@st.composite
def spoiled(draw, valid):
    """A valid file with one to four cuts, flips, insertions, repetitions or lying numbers."""
    raw = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 4))):
        # near the beginning, where headers are, as often as anywhere
        last = draw(st.sampled_from([min(64, len(raw)), len(raw)]))
        place = draw(st.integers(0, max(0, last)))
        change = draw(st.sampled_from(["flip", "cut", "insert", "lie", "repeat", "drop"]))
        if change == "flip" and place < len(raw):
            raw[place] ^= 1 << draw(st.integers(0, 7))
        elif change == "cut":
            del raw[place:]
        elif change == "insert":
            raw[place:place] = draw(st.sampled_from(SNIPPETS))
        elif change == "lie":
            form = draw(st.sampled_from(["<I", ">I", "<Q", ">Q"]))
            number = draw(st.sampled_from(LIES)) % 2 ** (8 * struct.calcsize(form))
            raw[place : place + struct.calcsize(form)] = struct.pack(form, number)
        elif change == "repeat":
            raw[place:place] = raw[place : place + draw(st.integers(1, 200))]
        else:
            del raw[place : place + draw(st.integers(1, 50))]
    return bytes(raw)


STRANGE = [None, True, -1, 0, 1.5, 2**40, 2**70, "", "..", "../../x", "a\nb", [], {}, [[]], "nan"]
STRANGE += [float("nan"), float("inf"), [1] * 50, "os.system", "numpy", "giw.nets.saving", "Held"]
STRANGE += [
    "TypeNode",
    "DictNode",
    "ListNode",
    "ObjectNode",
    "NdArrayNode",
    "CachedNode",
    "JsonNode",
]
STRANGE += [
    {"__class__": name, "__module__": module, "__loader__": "ObjectNode", "content": None}
    for module, name in (("subprocess", "Popen"), ("giw.nets.classifier", "GIWClassifier"))
]


@st.composite
def changed_json(draw, value):
    """Such a value with one or two of its parts replaced, removed, renamed or nested."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 2))):
        _change_one(draw, value)
    return value


def _change_one(draw, value):
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and draw(st.integers(0, 4)):
            value = inner
            continue
        change = draw(st.sampled_from(["replace", "remove", "rename", "nest"]))
        if change == "remove":
            del value[key]
        elif change == "rename" and isinstance(value, dict):
            value[draw(st.sampled_from(["", "key", "class", "../x"]))] = value.pop(key)
        elif change == "nest":
            deep = inner
            for _ in range(draw(st.sampled_from([1, 30, 300]))):
                deep = [deep]
            value[key] = deep
        else:
            value[key] = copy.deepcopy(draw(st.sampled_from(STRANGE)))
        return


@st.composite
def changed_zip(draw, content, ways=(zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)):
    """A zip file, sound as such, of which one member is spoiled, renamed or removed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    texts = [name for name in members if name.endswith("json")]  # they say what to build
    name = draw(st.sampled_from(texts or sorted(members)) | st.sampled_from(sorted(members)))
    change = draw(st.sampled_from(["spoil", "json", "json", "rename", "remove"]))
    if change == "json" and name in texts:
        members[name] = json.dumps(draw(changed_json(json.loads(members[name])))).encode()
    elif change == "rename":
        members[draw(st.sampled_from(["../../outside.npy", "/x.npy", "a"]))] = members.pop(name)
    elif change == "remove":
        del members[name]
    else:
        members[name] = draw(spoiled([members[name]]))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", draw(st.sampled_from(ways))) as archive:
        for member, body in members.items():
            archive.writestr(member, body)
    return buffer.getvalue()


def lying_npy(shape, dtype="<f8", body=b""):
    """An array whose header claims any shape, with any few bytes behind it."""
    header = repr({"descr": dtype, "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


@st.composite
def lying_npz(draw, names):
    """Arrays that claim up to 2^60 items; the zip file's own directory may back the lie up."""
    buffer = io.BytesIO()
    sizes = st.sampled_from([0, 1, 3, 1000, 2**20, 2**31, 2**40, 2**60, -1])
    packed = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(buffer, "w", packed) as archive:
        for name in names:
            shape = draw(st.lists(sizes, min_size=1, max_size=3))
            kind = draw(st.sampled_from(["<f8", "|u1", "<U4", "<U0", "|O", "<M8[ns]"]))
            archive.writestr(f"{name}.npy", lying_npy(shape, kind, bytes(draw(st.integers(0, 64)))))
    raw = bytearray(buffer.getvalue())
    if draw(st.booleans()):  # the size of the first member in the central directory
        place = raw.find(b"PK\x01\x02")
        raw[place + 24 : place + 28] = struct.pack("<I", draw(st.sampled_from(LIES)) % 2**32)
    return bytes(raw)
