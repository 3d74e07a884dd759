"""What processes share: settings, Visit, VisitWindow and their JSON. Standard library only."""
