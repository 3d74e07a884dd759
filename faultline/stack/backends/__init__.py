"""The two places where services run: processes of this machine, or containers."""
