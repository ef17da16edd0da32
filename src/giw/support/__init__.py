"""Is a validation point inside or outside the training support? Arrays in, a split out."""
