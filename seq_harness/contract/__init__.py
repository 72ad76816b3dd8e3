"""What crosses the worker wire: models, limits, errors, msgpack and the observation schedule."""
