package openapi

import (
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/clients/go/controltower/schemas"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// components collects the schemas that the document refers to. OpenAPI tools do not follow "$id" and "$defs", so each
// becomes a separate component.
type components struct {
	made map[string]canon.Value
	open []string // schema names whose text is still to be taken in
	seen map[string]bool
}

// ref refers to a schema by its name, or to one of its definitions by "name#def".
func (c *components) ref(name string) map[string]any {
	file, _, _ := strings.Cut(name, "#")
	if !c.seen[file] {
		c.seen[file] = true
		c.open = append(c.open, file)
	}
	return map[string]any{"$ref": "#/components/schemas/" + componentName(name)}
}

// componentName turns "work-unit#some_def" into "WorkUnitSomeDef".
func componentName(name string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '#' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// all adds every referenced schema, and those that it references.
func (c *components) all() (map[string]canon.Value, error) {
	for len(c.open) > 0 {
		name := c.open[0]
		c.open = c.open[1:]
		text, ok := schemas.Get(name)
		if !ok {
			return nil, fmt.Errorf("there is no schema %q", name)
		}
		v, err := canon.Parse(text, canon.ObjectRoot())
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		root := v.(*canon.Object)
		if defs, ok := root.Get("$defs"); ok {
			for def, s := range defs.(*canon.Object).All() {
				c.made[componentName(name+"#"+def)] = c.rewrite(name, s)
			}
		}
		for _, key := range []string{"$schema", "$id", "$defs"} {
			root.Delete(key)
		}
		c.made[componentName(name)] = c.rewrite(name, root)
	}
	return c.made, nil
}

// rewrite points the references of a schema to components.
func (c *components) rewrite(name string, v canon.Value) canon.Value {
	switch v := v.(type) {
	case canon.Array:
		for i := range v {
			v[i] = c.rewrite(name, v[i])
		}
	case *canon.Object:
		for key, member := range v.All() {
			target, isText := member.(string)
			if key != "$ref" || !isText {
				v.Set(key, c.rewrite(name, member))
				continue
			}
			file, def, _ := strings.Cut(target, "#/$defs/")
			if file == "" {
				file = name
			} else {
				file = strings.Split(file, ":")[3] // urn:svc:schema:<name>:<version>
			}
			if def != "" {
				file += "#" + def
			}
			v.Set(key, c.ref(file)["$ref"])
		}
	}
	return v
}

// list adds the component of a page whose items are all of one kind.
func (c *components) list(item string) (map[string]any, error) {
	text, _ := schemas.Get("list")
	v, err := canon.Parse(text, canon.ObjectRoot())
	if err != nil {
		return nil, err
	}
	root := v.(*canon.Object)
	for _, key := range []string{"$schema", "$id", "$defs"} {
		root.Delete(key)
	}
	properties, _ := root.Get("properties")
	items, _ := properties.(*canon.Object).Get("items")
	items.(*canon.Object).Set("items", c.ref(item))
	c.ref("list") // its definitions
	name := componentName(item) + "List"
	c.made[name] = c.rewrite("list", root)
	return map[string]any{"$ref": "#/components/schemas/" + name}, nil
}
