"""The model of an arm with a camera, for the demo and the tests."""
