"""External pods as jobs of the pool: acceptance, and the end of jobs whose pods are gone."""
