package change

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// satisfiesBody reports whether an object matches a body. Fields that the body does not name
// may have any value; null means absent. Lists of named things are compared by name. amounts
// means that texts are resource quantities, which the server may write differently.
func satisfiesBody(live, body any, amounts bool) bool {
	switch body := body.(type) {
	case nil:
		return live == nil
	case object:
		have, ok := live.(object)
		if !ok {
			return live == nil && removesOnly(body)
		}
		for key, value := range body {
			if key == "$patch" || key == "status" {
				continue
			}
			if !satisfiesBody(have[key], value, key == "requests" || key == "limits" || key == "hard" || amounts) {
				return false
			}
		}
		return true
	case []any:
		return holdsList(live, body, amounts)
	case string:
		have, ok := live.(string)
		return ok && (have == body || amounts && sameAmount(have, body))
	}
	if n, ok := toFloat(body); ok {
		m, ok := toFloat(live)
		return ok && n == m
	}
	return reflect.DeepEqual(live, body)
}

// removesOnly reports whether a body only removes fields.
func removesOnly(body object) bool {
	for _, value := range body {
		inner, ok := value.(object)
		if value != nil && (!ok || !removesOnly(inner)) {
			return false
		}
	}
	return true
}

func holdsList(live any, body []any, amounts bool) bool {
	have, _ := live.([]any)
	named := len(body) > 0
	for _, item := range body {
		named = named && textAt(item, "name") != ""
	}
	if !named {
		if len(have) != len(body) {
			return false
		}
		for i := range body {
			if !satisfiesBody(have[i], body[i], amounts) {
				return false
			}
		}
		return true
	}
	for _, item := range body {
		var found any
		for _, h := range have {
			if textAt(h, "name") == textAt(item, "name") {
				found = h
			}
		}
		if valueAt(item, "$patch") == "delete" {
			if found != nil {
				return false
			}
			continue
		}
		if !satisfiesBody(found, item, amounts) {
			return false
		}
	}
	return true
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func sameAmount(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) == 0
}
