package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/services/assistant/internal/helmrelease"
)

// metadataOnly requests names, labels and times. Anything else that the server still sends of a Secret is redacted in
// the transport, and dropped here.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// releases are the Secrets in which Helm keeps releases, without their data.
func (c *Cluster) releases(ctx context.Context, namespace string) ([]Secret, error) {
	var all []Secret
	err := eachPage(func(o metav1.ListOptions) (string, error) {
		o.LabelSelector = helmrelease.Selector
		raw, err := c.typed.CoreV1().RESTClient().Get().NamespaceIfScoped(namespace, namespace != "").Resource("secrets").
			VersionedParams(&o, scheme.ParameterCodec).SetHeader("Accept", metadataOnly).Do(ctx).Raw()
		if err != nil {
			return "", err
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(raw, &list); err != nil {
			return "", err
		}
		for i := range list.Items {
			s := &list.Items[i]
			if r := helmrelease.Of(s.Name, s.Labels, s.CreationTimestamp.Time); r != nil {
				all = append(all, Secret{Namespace: s.Namespace, Name: s.Name, Type: helmrelease.SecretType, Release: r})
			}
		}
		return list.Continue, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the releases of Helm: %w", err)
	}
	return all, nil
}
