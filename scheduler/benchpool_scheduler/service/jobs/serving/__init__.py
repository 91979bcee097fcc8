"""Services of people carried out: their replicas are jobs, watched until they answer."""
