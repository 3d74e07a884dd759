"""The services beside the engines, and the scripts that start each service."""
