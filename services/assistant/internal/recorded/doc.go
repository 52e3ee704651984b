// Package recorded serves the Kubernetes API from a recording of a cluster: a directory or an archive with lists of its
// objects and the logs of its containers.
//
// It reads the layouts of kubectl cluster-info dump, oc adm must-gather, Troubleshoot support bundles and plain kubectl
// get, and distinguishes them by content: every document with an apiVersion and a kind is an object or a list, and a
// log belongs to the pod and the container that its path names. Nothing can be written. The clock is the newest time in
// the recording.
//
// A recording is untrusted input: reading has limits, follows no link and writes nothing to disk. A kind without a file
// in the recording is not known to be absent: reading it is refused with a sentence, as if the right to read it were
// missing.
package recorded
