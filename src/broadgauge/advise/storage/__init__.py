"""Which storage for which phase of a training? By rule, from figures of phases."""
