// Package inference serves predictions from the models that a registry's aliases point to, follows those
// aliases, and watches the predictions for drift. docs/inference.md describes it from the outside.
package inference
