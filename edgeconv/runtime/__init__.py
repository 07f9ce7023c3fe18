"""What runs a plan: devices, sessions, the choice of `auto`, and the check of an output."""
