package playbook_test

import (
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
)

func TestClaimCases(t *testing.T) {
	t.Parallel()
	volume := func(change func(*corev1.PersistentVolume)) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			v := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}}
			v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			s.Claims[0].Spec.StorageClassName = new(string)
			change(&v)
			s.Volumes = append(s.Volumes, v)
		}
	}
	class := func(name string, change func(*playbook.Snapshot)) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			s.Claims[0].Spec.StorageClassName = &name
			s.Events = nil
			if change != nil {
				change(s)
			}
		}
	}
	checkCases(t, []changeCase{
		{"classes unread", "a11_absent_class", "", func(s *playbook.Snapshot) { s.Unread["storageclasses"] = true }, "Service `warehouse`"},
		{"no class at all", "a11_absent_class", "", func(s *playbook.Snapshot) { s.StorageClasses = nil }, "no storage class at all"},
		{"provisioner silent", "a11_absent_class", "", class("slow", nil), "has said nothing about the claim for 20 minutes"},
		{"provisioner fails", "a11_absent_class", "", class("slow", func(s *playbook.Snapshot) {
			s.Events = []corev1.Event{{Reason: "ProvisioningFailed", Message: "rpc error: code = ResourceExhausted desc = disk quota", InvolvedObject: corev1.ObjectReference{UID: s.Claims[0].UID}}}
		}), "`rpc error: code = ResourceExhausted desc = disk quota`"},
		{"no class named, no default", "a11_absent_class", "", func(s *playbook.Snapshot) {
			s.Claims[0].Spec.StorageClassName = nil
			s.StorageClasses = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "only"}, Provisioner: "disks.example"}}
		}, `{"spec":{"storageClassName":"only"}}`},
		{"volume too small", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("10Gi")
		}), "Volume `pv-1` has 10Gi, which is too small"},
		{"volume of another mode", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) {
			v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}), "offers the access modes `ReadOnlyMany` only"},
		{"volume of another class", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "tape" }), "has the class `tape`"},
		{"volume of a claim that is gone", "a11_absent_class", "", volume(func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Namespace: "reports", Name: "old"}, corev1.VolumeReleased
		}), "is still kept for the claim `reports/old`"},
		{"lost", "a11_absent_class", "", func(s *playbook.Snapshot) {
			s.Claims[0].Status.Phase, s.Claims[0].Spec.VolumeName = corev1.ClaimLost, "pv-9"
		}, "The volume `pv-9` that held the claim's data is gone"},
		{"claim absent", "a11_absent_class", "", func(s *playbook.Snapshot) {
			s.Claims[0].Name = "data-warehous-0"
			s.Claims[0].Status.Phase = corev1.ClaimBound
		}, "which does not exist"},
		{"held by another node", "a11_absent_class", "", func(s *playbook.Snapshot) {
			s.Claims[0].Status.Phase = corev1.ClaimBound
			pod := &s.Pods[0]
			pod.Status.Conditions = nil
			other := *pod.DeepCopy()
			pod.Spec.NodeName = "node-2"
			other.Name, other.UID, other.Spec.NodeName, other.Status.Phase = "warehouse-old", "p-old", "node-1", corev1.PodRunning
			s.Pods = append(s.Pods, other)
			s.Events = []corev1.Event{{Reason: "FailedAttachVolume", InvolvedObject: corev1.ObjectReference{UID: pod.UID},
				Message: `Multi-Attach error for volume "pv-1" Volume is already used by pod(s) warehouse-old`}}
		}, "is mounted by pod `warehouse-old` on node `node-1`"},
	})
	for name, change := range map[string]func(*playbook.Snapshot){
		"class that waits":       class("standard", nil),
		"just made":              class("slow", func(s *playbook.Snapshot) { s.Claims[0].CreationTimestamp.Time = s.Taken.Add(-time.Minute) }),
		"volume that fits":       volume(func(*corev1.PersistentVolume) {}),
		"claims unread":          func(s *playbook.Snapshot) { s.Unread["persistentvolumeclaims"] = true },
		"bound":                  func(s *playbook.Snapshot) { s.Claims[0].Status.Phase = corev1.ClaimBound },
		"volume made for absent": volume(func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "by-hand" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(t, "a11_absent_class")
			change(s)
			if name == "volume made for absent" {
				s.Claims[0].Spec.StorageClassName = new("by-hand")
			}
			for _, f := range playbook.Diagnose(s, "") {
				if f.Class == playbook.ClaimUnbound {
					t.Errorf("found %+v", f)
				}
			}
		})
	}
}

func TestAdmissionCases(t *testing.T) {
	t.Parallel()
	refused := func(file, message string) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			for i := range s.ReplicaSets[0].Status.Conditions {
				s.ReplicaSets[0].Status.Conditions[i].Message = message
			}
		}
	}
	box := func(s *playbook.Snapshot) *corev1.Container {
		return &s.Deployments[0].Spec.Template.Spec.Containers[0]
	}
	checkCases(t, []changeCase{
		{"room again", "a12_quota", "", func(s *playbook.Snapshot) { s.Quotas[0].Status.Used[corev1.ResourcePods] = resource.MustParse("1") }, "There is room again"},
		{"quota unread", "a12_quota", "", func(s *playbook.Snapshot) { s.Quotas, s.Unread["resourcequotas"] = nil, true }, "could not be read"},
		{"quota gone", "a12_quota", "", func(s *playbook.Snapshot) { s.Quotas = nil }, "is gone by now"},
		{"quota that demands", "a12_quota", "", refused("a12_quota", `pods "x" is forbidden: failed quota: team-a: must specify limits.cpu for: worker; limits.memory for: worker`), "counts resources that the pods do not state"},
		{"autoscaled", "a12_quota", "", func(s *playbook.Snapshot) {
			s.Autoscalers = []autoscalingv2.HorizontalPodAutoscaler{{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "worker"},
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "worker"}}}}
		}, "or raise the quota.\n"},
		{"rollout that needs one more", "a12_quota", "", func(s *playbook.Snapshot) {
			s.Deployments[0].Spec.Replicas, s.Deployments[0].Status.Replicas = new(int32(2)), 2
		}, "maxSurge 0"},
		{"all pods there", "a12_quota", "", func(s *playbook.Snapshot) { s.ReplicaSets[0].Status.Replicas = 4 }, ""},
		{"below the minimum", "limit_range", "", func(s *playbook.Snapshot) {
			box(s).Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}
			refused("", "pods is forbidden: minimum memory usage per Container is 16Mi, but request is 1Mi")(s)
		}, "--requests=memory=16Mi"},
		{"ratio", "limit_range", "", func(s *playbook.Snapshot) {
			box(s).Resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
			box(s).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1Gi")
			refused("", "pods is forbidden: memory max limit to request ratio per Container is 8, but provided ratio is 16.000000")(s)
		}, "may be 8 times the request"},
		{"of the whole pod", "limit_range", "", func(s *playbook.Snapshot) {
			s.LimitRanges[0].Spec.Limits[0] = corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
			refused("", "pods is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2147483648")(s)
		}, "maximum memory per Pod is 1Gi; the pod has limit 2Gi"},
		{"limit range unread", "limit_range", "", func(s *playbook.Snapshot) { s.LimitRanges = nil }, "but limit is 2Gi"},
	})
}

func TestIngressCases(t *testing.T) {
	t.Parallel()
	checkCases(t, []changeCase{
		{"service absent", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "storefrnt"
		}, "The service `storefront` is the nearest"},
		{"port by name", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "https"}
		}, "leads to port `https`"},
		{"port by name that is there", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port = networkingv1.ServiceBackendPort{Name: "http"}
		}, ""},
		{"default backend", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			spec := &s.Ingresses[0].Spec
			spec.DefaultBackend, spec.Rules = &spec.Rules[0].HTTP.Paths[0].Backend, nil
		}, `{"spec":{"defaultBackend":{"service":{"name":"storefront","port":{"name":null,"number":80}}}}}`},
		{"services unread", "a16_ingress_port", "", func(s *playbook.Snapshot) { s.Unread["services"] = true }, ""},
		{"class absent", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Ingresses[0].Status = nil, networkingv1.IngressStatus{}
			s.Ingresses[0].Spec.IngressClassName = new("haproxy")
		}, "The ingress class `haproxy` does not exist"},
		{"no class", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Ingresses[0].Status = nil, networkingv1.IngressStatus{}
			s.Ingresses[0].Spec.IngressClassName = nil
		}, "names no class and none is the default"},
		{"class by annotation", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Ingresses[0].Status = nil, networkingv1.IngressStatus{}
			s.Ingresses[0].Spec.IngressClassName, s.Ingresses[0].Annotations = nil, map[string]string{"kubernetes.io/ingress.class": "nginx"}
		}, ""},
		{"certificate absent", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules = nil
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"store.example"}, SecretName: "store-tls"}}
		}, "The Secret `store-tls` with the ingress's certificate does not exist"},
		{"certificate of an issuer", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules = nil
			s.Ingresses[0].Annotations = map[string]string{"cert-manager.io/cluster-issuer": "letters"}
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{SecretName: "store-tls"}}
		}, "The issuer `letters` is to make it"},
		{"certificate without a key", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules = nil
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{SecretName: "store-tls"}}
			s.Secrets = []playbook.SecretKeys{{Namespace: "store", Name: "store-tls", Keys: []string{"tls.crt"}}}
		}, "absent are `tls.key`"},
		{"secrets unread", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules, s.Unread["secrets"] = nil, true
			s.Ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{SecretName: "store-tls"}}
		}, ""},
		{"backends not ready", "a16_ingress_port", "", func(s *playbook.Snapshot) {
			s.Ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 80
			s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
			s.EndpointSlices[0].Endpoints = nil
		}, "A consequence: ingress `front`. It leads to the service `storefront`"},
	})
}

func TestPolicyCases(t *testing.T) {
	t.Parallel()
	policy := func(s *playbook.Snapshot) *networkingv1.NetworkPolicySpec { return &s.NetworkPolicies[0].Spec }
	well := func(s *playbook.Snapshot) { // the client shows nothing
		for i := range s.Pods {
			s.Pods[i].Status.ContainerStatuses[0].Ready = true
			s.Pods[i].Status.Conditions[0].Status = corev1.ConditionTrue
		}
		s.Events = nil
	}
	checkCases(t, []changeCase{
		{"client well", "a17_policy", "", well, "Confidence: medium"},
		{"another port", "a17_policy", "", func(s *playbook.Snapshot) {
			policy(s).Ingress[0].From[0].PodSelector.MatchLabels = map[string]string{"role": "backend"}
			policy(s).Ingress[0].Ports[0].Port = new(intstr.FromInt32(9090))
		}, "lets in only pods with `role=backend` on `TCP 9090`"},
		{"label that chooses the pods", "a17_policy", "", func(s *playbook.Snapshot) {
			s.Deployments[0].Spec.Selector.MatchLabels["role"] = "backend"
		}, "or let the policy name a label that they have.\n"},
		{"nothing may leave", "a17_policy", "", func(s *playbook.Snapshot) {
			*policy(s) = networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}}
		}, "it lets out nothing"},
		{"caller not known", "a17_policy", "", func(s *playbook.Snapshot) {
			well(s)
			for i := range s.Pods {
				s.Pods[i].Spec.Containers[0].Env = nil
			}
		}, "no pod of the namespace has it"},
	})
	for name, change := range map[string]func(*playbook.Snapshot){
		"label is there": func(s *playbook.Snapshot) { policy(s).Ingress[0].From[0].PodSelector.MatchLabels["role"] = "backend" },
		"another policy helps": func(s *playbook.Snapshot) {
			p := s.NetworkPolicies[0].DeepCopy()
			p.Name, p.Spec.Ingress = "all", []networkingv1.NetworkPolicyIngressRule{{}}
			s.NetworkPolicies = append(s.NetworkPolicies, *p)
		},
		"address is let in": func(s *playbook.Snapshot) {
			policy(s).Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/24"}}}
		},
		"port by range": func(s *playbook.Snapshot) {
			policy(s).Ingress[0].From = nil
			policy(s).Ingress[0].Ports[0].Port, policy(s).Ingress[0].Ports[0].EndPort = new(intstr.FromInt32(8000)), new(int32(9000))
		},
		"about other pods": func(s *playbook.Snapshot) { policy(s).PodSelector.MatchLabels["app"] = "else" },
		"namespaces unknown": func(s *playbook.Snapshot) {
			policy(s).Ingress[0].From = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}}}
		},
		"policies unread": func(s *playbook.Snapshot) { s.Unread["networkpolicies"] = true },
		"word, not an address": func(s *playbook.Snapshot) {
			s.Pods[1].Spec.Containers[0].Env[0] = corev1.EnvVar{Name: "APP_NAME", Value: "api"}
			policy(s).Ingress[0].From = nil
			policy(s).Ingress = nil
		},
		"endpoints away": func(s *playbook.Snapshot) { s.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := snapshot(t, "a17_policy")
			change(s)
			for _, f := range playbook.Diagnose(s, "") {
				if f.Class == playbook.PolicyBlocks {
					t.Errorf("found %+v", f)
				}
			}
		})
	}
}

func TestScaledToZeroCases(t *testing.T) {
	t.Parallel()
	off := func(s *playbook.Snapshot) {
		s.Services[0].Spec.Selector = s.Deployments[0].Spec.Selector.MatchLabels
		s.Services[0].Name = "app"
		s.Deployments[0].Spec.Replicas = new(int32)
		s.Pods = s.Pods[:1] // the caller-to-be of nobody
		s.NetworkPolicies, s.Events = nil, nil
	}
	checkCases(t, []changeCase{
		{"nobody asks for it", "a17_policy", "", off, "Confidence: low"},
		{"somebody is told to reach it", "a17_policy", "", func(s *playbook.Snapshot) {
			off(s)
			s.Pods[0].Spec.Containers[0].Env = []corev1.EnvVar{{Name: "APP_URL", Value: "http://app.crm.svc/v1"}}
		}, "Told to reach it are pod `api-1-abcde`"},
	})
}

func TestNameCases(t *testing.T) {
	t.Parallel()
	egress := func(s *playbook.Snapshot) {
		p := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "crm", Name: "closed"}}
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
		p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}}
		s.NetworkPolicies = append(s.NetworkPolicies, p)
	}
	down := func(s *playbook.Snapshot) {
		s.EndpointSlices[0].Endpoints = nil
		dns := slices.IndexFunc(s.Pods, func(p corev1.Pod) bool { return p.Namespace == "kube-system" })
		s.Pods[dns].Status.Conditions[0].Status = corev1.ConditionFalse
		s.Pods[dns].Status.ContainerStatuses[0].Ready = false
	}
	const unanswered = "dial tcp: lookup queue on 10.96.0.10:53: read udp 10.0.0.41:40000->10.96.0.10:53: i/o timeout"
	checkCases(t, []changeCase{
		{"outside the cluster", "wrong_name", "getaddrinfo ENOTFOUND smtp.mail.example", nil, "`smtp.mail.example`, which is outside the cluster"},
		{"service of another namespace", "wrong_name", "UnknownHostException: kube-dns", nil, "elsewhere are reached as `kube-dns.kube-system`"},
		{"short for another namespace", "wrong_name", `could not translate host name "kubedns.kube-system" to address: Name or service not known`, nil, "no service `kubedns` in namespace `kube-system`"},
		{"service is there", "wrong_name", "lookup queue on 10.96.0.10:53: no such host", nil, "crash loop"},
		{"no name told", "wrong_name", "socket.gaierror: [Errno -2] Name or service not known", nil, "crash loop"},
		{"services unread", "wrong_name", noSuchHost, func(s *playbook.Snapshot) { s.Unread["services"] = true }, "crash loop"},
		{"policy keeps it away", "wrong_name", unanswered, egress, "keeps deployment `mailer` from the name server (DNS, port 53)"},
		{"name server down", "wrong_name", unanswered, down, "A consequence: deployment `mailer`"},
	})
}

func TestTerminatingCases(t *testing.T) {
	t.Parallel()
	on := func(change func(*corev1.Namespace)) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) { change(&s.Namespaces[0]) }
	}
	checkCases(t, []changeCase{
		{"on the namespace itself", "a18_namespace", "", func(s *playbook.Snapshot) {
			s.ConfigMaps, s.Namespaces[0].Status.Conditions = nil, nil
			s.Namespaces[0].Finalizers = []string{"tenants.example/cleanup"}
		}, "`tenants.example/cleanup` on the namespace itself"},
		{"kind that is not read", "a18_namespace", "", func(s *playbook.Snapshot) { s.ConfigMaps = nil }, "the controller of `backups.example`"},
		{"API away", "a18_namespace", "", on(func(n *corev1.Namespace) {
			n.Status.Conditions[0].Status = corev1.ConditionTrue
			n.Status.Conditions[0].Message = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"
		}), "An API of the cluster does not answer"},
		{"deleted just now", "a18_namespace", "", func(s *playbook.Snapshot) {
			now := metav1.Time{Time: s.Taken.Add(-time.Minute)}
			s.Namespaces[0].DeletionTimestamp, s.ConfigMaps[0].DeletionTimestamp = &now, &now
		}, ""},
		{"object in a namespace that stays", "a18_namespace", "", on(func(n *corev1.Namespace) { n.DeletionTimestamp = nil }), "Configmap `ledger` in namespace `retired`: stuck terminating"},
		{"claim that is mounted", "a11_absent_class", "", func(s *playbook.Snapshot) {
			s.Claims[0].Status.Phase, s.Claims[0].DeletionTimestamp = corev1.ClaimBound, &metav1.Time{Time: s.Taken.Add(-time.Hour)}
			s.Pods[0].Status.Conditions, s.Pods[0].Spec.NodeName, s.Pods[0].Status.Phase = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}, "node-1", corev1.PodRunning
			s.StatefulSets[0].Status.ReadyReplicas, s.StatefulSets[0].Status.AvailableReplicas = 1, 1
		}, "still mounted by 1 pod"},
	})
}

func TestNodeCases(t *testing.T) {
	t.Parallel()
	said := func(status corev1.ConditionStatus, message string) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			c := &s.Nodes[0].Status.Conditions[2]
			c.Status, c.Reason, c.Message = status, "KubeletNotReady", message
		}
	}
	pressed := func(s *playbook.Snapshot) { // ready, and alone
		s.Nodes[0].Status.Conditions[2].Status = corev1.ConditionTrue
		s.Pods, s.Services, s.StatefulSets, s.DaemonSets = nil, nil, nil, nil
	}
	evicted := func(ago time.Duration, message string) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			pressed(s)
			at := metav1.Time{Time: s.Taken.Add(-ago)}
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
			pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: message, StartTime: &at}
			s.Pods = []corev1.Pod{pod}
		}
	}
	const low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
	checkCases(t, []changeCase{
		{"network plug-in", "a19_node_not_ready", "", said(corev1.ConditionFalse, "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"), "The network plug-in of node `node-1`"},
		{"runtime", "a19_node_not_ready", "", said(corev1.ConditionFalse, "[container runtime is down, PLEG is not healthy: pleg was last seen active 5m0s ago; threshold is 3m0s]"), "container runtime of node `node-1` does not answer"},
		{"cordoned", "a19_node_not_ready", "", func(s *playbook.Snapshot) { s.Nodes[0].Spec.Unschedulable = true }, "somebody may be at work on it"},
		{"memory", "a19_node_not_ready", "", func(s *playbook.Snapshot) {
			pressed(s)
			s.Nodes[0].Status.Conditions[0].Status, s.Nodes[0].Status.Conditions[0].Message = corev1.ConditionTrue, "kubelet has insufficient memory available"
		}, "Node `node-1` runs short of memory"},
		{"disk", "a19_node_not_ready", "", func(s *playbook.Snapshot) {
			pressed(s)
			s.Nodes[0].Status.Conditions[1].Status = corev1.ConditionTrue
		}, "runs short of disk space"},
		{"evicted", "a19_node_not_ready", "", evicted(time.Hour, low), "Evicted for memory: `shop/web-1`"},
		{"evicted long ago", "a19_node_not_ready", "", evicted(48*time.Hour, low), ""},
		{"over its own limit", "a19_node_not_ready", "", evicted(time.Hour, `Container web exceeded its local ephemeral storage limit "1Gi". `), "the node is well"},
		{"nodes unread", "a19_node_not_ready", "", func(s *playbook.Snapshot) {
			pressed(s)
			s.Nodes[0].Status.Conditions[2].Status, s.Unread["nodes"] = corev1.ConditionUnknown, true
		}, ""},
	})
}

func TestAutoscalerCases(t *testing.T) {
	t.Parallel()
	asked := func(s *playbook.Snapshot) { // the request is there
		for _, c := range []*corev1.Container{&s.Pods[0].Spec.Containers[0], &s.Deployments[0].Spec.Template.Spec.Containers[0]} {
			c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
		}
	}
	says := func(reason, message string) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			asked(s)
			c := &s.Autoscalers[0].Status.Conditions[1]
			c.Reason, c.Message = reason, message
		}
	}
	atMaximum := func(use int32) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) {
			asked(s)
			a := &s.Autoscalers[0]
			a.Status.CurrentReplicas = a.Spec.MaxReplicas
			a.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: &use}}}}
			a.Status.Conditions[1].Status = corev1.ConditionTrue
			a.Status.Conditions = append(a.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: autoscalingv2.ScalingLimited, Status: corev1.ConditionTrue, Reason: "TooManyReplicas"})
		}
	}
	const noAPI = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
	checkCases(t, []changeCase{
		{"no metrics API", "a20_no_requests", "", says("FailedGetResourceMetric", noAPI), "The resource metrics API does not answer"},
		{"no metrics API and no requests", "a20_no_requests", "", func(s *playbook.Snapshot) { s.Autoscalers[0].Status.Conditions[1].Message = noAPI }, "miss the cpu request"},
		{"request of an earlier revision", "a20_no_requests", "", func(s *playbook.Snapshot) {
			now := s.ReplicaSets[0].DeepCopy()
			now.Name, now.UID, now.Annotations = "web-2", "r-web-2", map[string]string{"deployment.kubernetes.io/revision": "2"}
			now.Spec.Template = s.Deployments[0].Spec.Template
			s.ReplicaSets = append(s.ReplicaSets, *now)
			s.ReplicaSets[0].Spec.Replicas = new(int32)
			s.ReplicaSets[0].Status.Replicas = 0
			s.ReplicaSets[0].Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
			s.Pods[0].OwnerReferences[0].Name = "web-2"
		}, "--requests=cpu=250m"},
		{"pods not ready", "a20_no_requests", "", says("FailedGetResourceMetric", "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)"), "There is no usage to measure yet"},
		{"custom metric", "a20_no_requests", "", says("FailedGetPodsMetric", "unable to get metric queue: unable to fetch metrics from custom metrics API: no custom metrics API registered"), "custom or external metric"},
		{"two autoscalers", "a20_no_requests", "", says("AmbiguousSelector", "pods by selector app=web are controlled by multiple HPAs: [shop/a shop/b]"), "Let one autoscaler stay"},
		{"target absent", "a20_no_requests", "", func(s *playbook.Snapshot) { s.Autoscalers[0].Spec.ScaleTargetRef.Name = "wep" }, "The nearest is `web`"},
		{"target unread", "a20_no_requests", "", func(s *playbook.Snapshot) {
			s.Autoscalers[0].Spec.ScaleTargetRef.Name, s.Unread["deployments"] = "wep", true
			s.Autoscalers[0].Status.Conditions = nil
		}, ""},
		{"switched off", "a20_no_requests", "", func(s *playbook.Snapshot) { s.Deployments[0].Spec.Replicas, s.Pods = new(int32), nil }, ""},
		{"at its maximum by design", "a20_no_requests", "", atMaximum(75), ""},
		{"at its maximum and over", "a20_no_requests", "", atMaximum(140), "Confidence: low"},
		{"average value", "a20_no_requests", "", func(s *playbook.Snapshot) {
			s.Autoscalers[0].Spec.Metrics[0].Resource.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType}
			s.Autoscalers[0].Status.Conditions[1].Status = corev1.ConditionTrue
		}, ""},
	})
}

func TestBudgetCases(t *testing.T) {
	t.Parallel()
	budget := func(change func(*policyv1.PodDisruptionBudget)) func(*playbook.Snapshot) {
		return func(s *playbook.Snapshot) { change(&s.Budgets[0]) }
	}
	checkCases(t, []changeCase{
		{"nobody drains", "a21_budget", "", func(s *playbook.Snapshot) { s.Nodes[0].Spec = corev1.NodeSpec{} }, "Confidence: low"},
		{"none may be away", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
		}), "more replicas do not help"},
		{"one may go", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }), ""},
		{"one is going", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 1; b.Status.CurrentHealthy = 1 }), ""},
		{"not looked at yet", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }), ""},
		{"chooses nothing", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels["app"] = "else" }), ""},
		{"pods without a scale", "a21_budget", "", budget(func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions[0].Reason, b.Status.Conditions[0].Message = policyv1.SyncFailedReason, "found no controllers for pod"
		}), "`found no controllers for pod`"},
		{"two budgets", "a21_budget", "", func(s *playbook.Snapshot) {
			b := s.Budgets[0].DeepCopy()
			b.Name, b.Spec.Selector.MatchLabels = "other", map[string]string{"app": "ledger", "tier": "data"}
			s.Budgets = append(s.Budgets, *b)
			s.Pods[0].Labels["tier"] = "data"
			b.Status.DisruptionsAllowed, s.Budgets[0].Status.DisruptionsAllowed = 1, 1
			s.Budgets[1].Generation = 9
		}, "under more than one budget"},
	})
}
