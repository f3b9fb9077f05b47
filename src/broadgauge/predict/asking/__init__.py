"""Which trainings are asked about? From flags, experiments and the catalog to cases."""
