package clients
