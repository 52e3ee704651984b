// Package recorded answers the Kubernetes API from a recording of a cluster: a directory or an archive that holds lists of
// its objects and the logs of its containers.
//
// The layouts of kubectl cluster-info dump, oc adm must-gather, Troubleshoot support bundles and plain kubectl get are told
// apart by what the files hold: every document with an apiVersion and a kind is an object or a list, and a log belongs to the
// pod and the container that its path names. Nothing can be written. The clock stands at the newest time in the recording.
//
// A recording comes from outside: it is read within bounds, follows no link and writes nothing to disk. What a recording has
// no file for is not known to be absent: reading such a kind is refused with a sentence, as where the right to read it lacks.
package recorded
