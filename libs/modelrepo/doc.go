// Package modelrepo reads a model repository: the folder in which people declare models, data sets and the registries
// that choose the models to run in each environment.
//
//	models/<task_type>/<Name>/{model.yaml, README.md, images/}
//	datasets/<Name>.yaml
//	data/
//	registries/{base,dev,staging,prod}.yaml
//
// A bad file does not affect the others: Open returns the sound ones and lists each fault with its file and line.
package modelrepo
