"""The reference worker: serves a policy. Runs without ROS."""
