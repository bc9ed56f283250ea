"""``anvil doctor``: the list of its examinations is in ``examinations``, their functions are in the other modules."""
