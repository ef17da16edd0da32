"""From a clean sample to a problem in which training and test part ways."""
