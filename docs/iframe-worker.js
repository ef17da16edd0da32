/* Search without a server: browsers start no worker from file://, so a hidden frame plays one.
   Pages that come from a server keep the browser's own. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      // what the worker posts arrives here, what is posted to it arrives in the frame
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.send = (data) => inner.dispatchEvent(new inner.MessageEvent("message", { data }));
      this.waiting = [];
      const script = inner.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.waiting.forEach(this.send);
        this.waiting = null;
      };
      inner.document.body.append(script);
      this.frame = frame;
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.send(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
