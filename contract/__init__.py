"""What crosses a process border: settings, Visit, VisitWindow and their JSON. Standard library only."""
