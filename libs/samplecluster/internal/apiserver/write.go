package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/mlp-platform/platform/libs/samplecluster/internal/admission"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/resource"
	"github.com/mlp-platform/platform/libs/samplecluster/internal/store"
)

var (
	strictCodec  = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{Strict: true})
	lenientCodec = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{})
)

// options are the query parameters all writes share.
type options struct {
	dryRun     bool
	manager    string
	force      bool
	validation string
}

func writeOptions(r request) (options, error) {
	query := r.URL.Query()
	o := options{manager: query.Get("fieldManager"), force: query.Get("force") == "true", validation: query.Get("fieldValidation")}
	var err error
	if o.dryRun, err = dryRun(query["dryRun"]); err != nil {
		return o, err
	}
	if o.manager == "" {
		o.manager, _, _ = strings.Cut(r.UserAgent(), "/")
	}
	if len(o.manager) > 128 {
		return o, apierrors.NewBadRequest("fieldManager may not be longer than 128 bytes")
	}
	switch o.validation {
	case "", metav1.FieldValidationWarn, metav1.FieldValidationStrict, metav1.FieldValidationIgnore:
	default:
		return o, apierrors.NewBadRequest(fmt.Sprintf(`fieldValidation: Unsupported value: %q: supported values: "", "Ignore", "Strict", "Warn"`, o.validation))
	}
	return o, nil
}

func dryRun(values []string) (bool, error) {
	for _, v := range values {
		if v != metav1.DryRunAll {
			return false, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "Options"}, "", field.ErrorList{field.NotSupported(field.NewPath("dryRun"), v, []string{metav1.DryRunAll})})
		}
	}
	return len(values) > 0, nil
}

// readBody reads a JSON or YAML body and returns it as JSON.
func readBody(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "", "application/json", "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json":
		return data, nil
	case "application/yaml", "application/apply-patch+yaml":
		data, err = yaml.YAMLToJSON(data)
		if err != nil {
			return nil, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
		}
		return data, nil
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "", "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml", 0, true)
}

// decodeBody reads a body into a plain value.
func decodeBody(r *http.Request, into any) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return apierrors.NewBadRequest("couldn't decode the body: " + err.Error())
	}
	return nil
}

// decodeObject decodes JSON into an object of the kind. Unknown and repeated members are refused or reported as
// warnings, as the caller requested.
func decodeObject(w http.ResponseWriter, kind resource.Kind, data []byte, validation string) (resource.Object, error) {
	gvk := kind.GroupVersionKind
	codec := strictCodec
	if validation == metav1.FieldValidationIgnore {
		codec = lenientCodec
	}
	decoded, found, err := codec.Decode(data, &gvk, nil)
	if err != nil && runtime.IsStrictDecodingError(err) {
		if validation == metav1.FieldValidationStrict {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, gvk.Kind, err))
		}
		for _, warning := range strings.Split(strings.TrimPrefix(err.Error(), "strict decoding error: "), ", ") {
			w.Header().Add("Warning", fmt.Sprintf("299 - %q", warning))
		}
	} else if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, gvk.Kind, err))
	}
	o, ok := decoded.(resource.Object)
	if !ok || *found != gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", found.GroupVersion(), gvk.GroupVersion()))
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// checkPlace checks that the object has the same name and namespace as the URL.
func checkPlace(r request, o resource.Object) error {
	if r.kind.Namespaced {
		if o.GetNamespace() == "" {
			o.SetNamespace(r.namespace)
		}
		if o.GetNamespace() != r.namespace {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
	} else {
		o.SetNamespace("")
	}
	if r.name == "" {
		return nil
	}
	if o.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object must be specified to match the name on the URL (%s)", r.name))
	}
	if o.GetName() != r.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), r.name))
	}
	return nil
}

// readObject reads the object that a request brings, and how it wants it to be written.
func readObject(w http.ResponseWriter, r request) (resource.Object, options, error) {
	opts, err := writeOptions(r)
	if err != nil {
		return nil, opts, err
	}
	data, err := readBody(r.Request)
	if err != nil {
		return nil, opts, err
	}
	o, err := decodeObject(w, r.kind, data, opts.validation)
	if err != nil {
		return nil, opts, err
	}
	return o, opts, checkPlace(r, o)
}

func (s *Server) create(w http.ResponseWriter, r request) error {
	o, opts, err := readObject(w, r)
	if err != nil {
		return err
	}
	s.store.Do(func(tx store.Tx) { o, err = s.admitNew(tx, r.kind, o, opts) })
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, o)
	return nil
}

// admitNew admits and stores a new object; a dry run stops short of storing.
func (s *Server) admitNew(tx store.Tx, kind resource.Kind, o resource.Object, opts options) (resource.Object, error) {
	o.SetManagedFields(nil)
	if err := admission.Create(tx, kind, o, s.now()); err != nil {
		return nil, err
	}
	o, err := s.managers.update(kind, "", kind.New(), o, opts.manager)
	if err != nil {
		return nil, err
	}
	if !opts.dryRun {
		tx.Put(kind.GroupResource(), o)
	}
	return o, nil
}

func (s *Server) update(w http.ResponseWriter, r request) error {
	o, opts, err := readObject(w, r)
	if err != nil {
		return err
	}
	s.store.Do(func(tx store.Tx) {
		var old resource.Object
		if old, err = s.find(tx, r); err == nil {
			o, err = s.admitChange(tx, r, old, o, opts)
		}
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, o)
	return nil
}

// admitChange admits and stores a changed object; a dry run stops short of storing.
func (s *Server) admitChange(tx store.Tx, r request, old, o resource.Object, opts options) (resource.Object, error) {
	o, err := s.managers.update(r.kind, r.subresource, old, o, opts.manager)
	if err != nil {
		return nil, err
	}
	return s.replace(tx, r, old, o, opts.dryRun)
}

func (s *Server) replace(tx store.Tx, r request, old, o resource.Object, dry bool) (resource.Object, error) {
	if err := admission.Update(tx, r.kind, old, o, r.subresource); err != nil {
		return nil, err
	}
	if dry {
		return o, nil
	}
	// An object that was only waiting for its last finalizer goes now.
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && len(old.GetFinalizers()) > 0 && !isPod(r.kind) && !isNamespace(r.kind) {
		tx.Remove(r.kind.GroupResource(), o.GetNamespace(), o.GetName())
		return o, nil
	}
	tx.Put(r.kind.GroupResource(), o)
	return o, nil
}

func isPod(k resource.Kind) bool       { return k.GroupResource() == resource.Pods }
func isNamespace(k resource.Kind) bool { return k.GroupResource() == resource.Namespaces }

func (s *Server) getScale(w http.ResponseWriter, r request) (err error) {
	var sc autoscalingv1.Scale
	s.store.Do(func(tx store.Tx) {
		o, missing := s.find(tx, r)
		if missing != nil {
			err = missing
			return
		}
		sc = scaleOf(o)
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, sc)
	return nil
}

// setScale changes the replica count by a whole Scale or a patch of one.
func (s *Server) setScale(w http.ResponseWriter, r request) error {
	opts, err := writeOptions(r)
	if err != nil {
		return err
	}
	data, err := readBody(r.Request)
	if err != nil {
		return err
	}
	var out autoscalingv1.Scale
	s.store.Do(func(tx store.Tx) {
		old, missing := s.find(tx, r)
		if missing != nil {
			err = missing
			return
		}
		wanted := data
		if r.Method == http.MethodPatch {
			if wanted, err = applyPatch(r, scaleOf(old), data, autoscalingv1.Scale{}); err != nil {
				return
			}
		}
		var sc autoscalingv1.Scale
		if json.Unmarshal(wanted, &sc) != nil {
			err = apierrors.NewBadRequest("couldn't decode the Scale")
			return
		}
		if sc.Spec.Replicas < 0 {
			err = apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, r.name, field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), sc.Spec.Replicas, "must be greater than or equal to 0")})
			return
		}
		o := old.DeepCopyObject().(resource.Object)
		*replicaCount(o) = sc.Spec.Replicas
		o.SetResourceVersion(sc.ResourceVersion)
		o.SetUID(sc.UID)
		whole := r
		whole.subresource = ""
		if o, err = s.admitChange(tx, whole, old, o, opts); err == nil {
			out = scaleOf(o)
		}
	})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}
