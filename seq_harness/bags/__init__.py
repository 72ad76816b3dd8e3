"""Reading and writing rosbag2 recordings."""
