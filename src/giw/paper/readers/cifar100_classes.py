"""The 20 superclasses of CIFAR-100 and the 5 classes in each, as the paper's appendix has them."""

from __future__ import annotations

import numpy as np

# The first two classes of each line are those that training sees in the paper.
SUPERCLASSES: dict[str, tuple[str, ...]] = {
    name: tuple(classes.split())
    for name, classes in {
        "aquatic_mammals": "beaver dolphin otter seal whale",
        "fish": "aquarium_fish flatfish ray shark trout",
        "flowers": "orchid poppy rose sunflower tulip",
        "food_containers": "bottle bowl can cup plate",
        "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
        "household_electrical_devices": "clock keyboard lamp telephone television",
        "household_furniture": "bed chair couch table wardrobe",
        "insects": "bee beetle butterfly caterpillar cockroach",
        "large_carnivores": "bear leopard lion tiger wolf",
        "large_man-made_outdoor_things": "bridge castle house road skyscraper",
        "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
        "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
        "medium_mammals": "fox porcupine possum raccoon skunk",
        "non-insect_invertebrates": "crab lobster snail spider worm",
        "people": "baby boy girl man woman",
        "reptiles": "crocodile dinosaur lizard snake turtle",
        "small_mammals": "hamster mouse rabbit shrew squirrel",
        "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
        "vehicles_1": "bicycle bus motorcycle pickup_truck train",
        "vehicles_2": "lawn_mower rocket streetcar tank tractor",
    }.items()
}
COARSE_NAMES = tuple(SUPERCLASSES)  # in alphabetical order, which is the order of their numbers
FINE_NAMES = tuple(sorted(name for five in SUPERCLASSES.values() for name in five))
FINE_TO_COARSE = np.array(
    [next(i for i, five in enumerate(SUPERCLASSES.values()) if fine in five) for fine in FINE_NAMES]
)  # (100,)
PAPER_TRAINING_CLASSES = tuple(
    sorted(FINE_NAMES.index(fine) for five in SUPERCLASSES.values() for fine in five[:2])
)  # 40 fine classes
