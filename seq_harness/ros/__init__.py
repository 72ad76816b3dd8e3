"""The node and all that imports rclpy or message packages."""
