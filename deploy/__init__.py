"""Write the Kubernetes manifests of the stack for three operators, and compute how large a cluster must be."""
