package mlp
