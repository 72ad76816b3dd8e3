"""ROS messages to arrays and back, by their fields alone."""
