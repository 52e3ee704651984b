package apitest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Manual is the part of a service's page that is made from its code: every route, setting and error.
type Manual struct {
	// Document is the OpenAPI document; a summary ends in the scope or role, in brackets or parentheses.
	Document []byte
	// Access is the heading of that column, AccessNote a sentence about its values.
	Access, AccessNote string
	// Settings are the configuration structs, in the order of the page.
	Settings []SettingsStruct
	// Kinds are the folders and files that hold tables of errors which the service can answer.
	Kinds []string
}

// SettingsStruct names a struct with env tags.
type SettingsStruct struct{ File, Name string }

// Render is the generated part of the page.
func (m Manual) Render() (string, error) {
	var parts []string
	for _, render := range []func() (string, error){m.routes, m.settings, m.errors} {
		part, err := render()
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n"), nil
}

func (m Manual) routes() (string, error) {
	var doc struct {
		Tags []struct {
			Name, Description string
		}
		Paths yaml.MapSlice
	}
	if err := yaml.UnmarshalWithOptions(m.Document, &doc, yaml.UseOrderedMap()); err != nil {
		return "", err
	}
	rows := map[string][]string{}
	for _, path := range doc.Paths {
		for _, method := range path.Value.(yaml.MapSlice) {
			op, ok := method.Value.(yaml.MapSlice)
			if !ok { // the parameters of the path
				continue
			}
			o := op.ToMap()
			tag := o["tags"].([]any)[0].(string)
			summary := o["summary"].(string)
			i := strings.LastIndexAny(summary, "[(")
			if i < 0 {
				return "", fmt.Errorf("the summary of %s %s does not say who may call it", method.Key, path.Key)
			}
			rows[tag] = append(rows[tag], fmt.Sprintf("| %s `%s` | %s | %s | %s |\n", strings.ToUpper(method.Key.(string)), path.Key,
				strings.Trim(summary[i:], "[]()"), strings.Join(queryNames(o["parameters"]), ", "), strings.TrimSpace(summary[:i])))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Every route\n\nPath parameters are in braces. %s\n", m.AccessNote)
	for _, tag := range doc.Tags {
		fmt.Fprintf(&b, "\n**%s**\n\n| Route | %s | Query | Does |\n|---|---|---|---|\n%s", tag.Description, m.Access, strings.Join(rows[tag.Name], ""))
		delete(rows, tag.Name)
	}
	for tag := range rows {
		return "", fmt.Errorf("the document describes no tag %q", tag)
	}
	return b.String(), nil
}

func queryNames(parameters any) (names []string) {
	list, _ := parameters.([]any)
	for _, p := range list {
		m := p.(yaml.MapSlice).ToMap()
		if m["in"] == "query" {
			names = append(names, m["name"].(string))
			continue
		}
		// References to parameters of the query; those of the path are in the route.
		if ref, _ := m["$ref"].(string); strings.HasSuffix(ref, "/Limit") || strings.HasSuffix(ref, "/Cursor") || strings.HasSuffix(ref, "/Cluster") {
			names = append(names, strings.ToLower(filepath.Base(ref)))
		}
	}
	return names
}

func (m Manual) settings() (string, error) {
	var b strings.Builder
	b.WriteString("## Every setting\n\nA secret may also be read from the file that `<NAME>_FILE` names. All configuration errors are reported together.\n\n| Variable | Default | |\n|---|---|---|\n")
	for _, s := range m.Settings {
		all, err := s.read()
		if err != nil {
			return "", err
		}
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].shared && (all[n].standard == "") == (all[0].standard == "") {
				n++
			}
			var names, defaults []string
			for _, v := range all[:n] {
				names = append(names, "`"+v.env+"`")
				if v.standard != "" {
					defaults = append(defaults, "`"+v.standard+"`")
				}
			}
			if same := slices.Compact(slices.Clone(defaults)); len(same) == 1 {
				defaults = same
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, ", "), strings.Join(defaults, ", "), all[0].text)
			all = all[n:]
		}
	}
	return b.String(), nil
}

// setting is one environment variable, documented by the comment of its field.
type setting struct {
	env, standard, text string
	shared              bool // the comment is that of the field above
}

// read lists the settings of the struct. A comment also applies to the fields below it that have none, and refers to
// fields by their Go names.
func (s SettingsStruct) read() ([]setting, error) {
	file, err := parser.ParseFile(token.NewFileSet(), s.File, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out []setting
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != s.Name {
			return true
		}
		text := ""
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Doc != nil {
				text = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
			if f.Tag == nil || len(f.Names) != 1 {
				continue
			}
			raw, _ := strconv.Unquote(f.Tag.Value)
			tag := reflect.StructTag(raw)
			if tag.Get("env") == "-" {
				continue
			}
			out = append(out, setting{tag.Get("env"), tag.Get("envDefault"), text, f.Doc == nil && len(out) > 0})
			names = append(names, f.Names[0].Name)
		}
		return false
	})
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no struct %s with settings", s.File, s.Name)
	}
	for i := range out {
		for j, field := range names {
			out[i].text = regexp.MustCompile(`\b`+field+`\b`).ReplaceAllString(out[i].text, "`"+out[j].env+"`")
		}
		out[i].text = strings.TrimPrefix(out[i].text, "`"+out[i].env+"` is ")
	}
	return out, nil
}

func (m Manual) errors() (string, error) {
	kinds, err := Kinds(m.Kinds...)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("## Every error\n\nErrors are problem documents (RFC 9457). `code` is stable; `detail` states the cause and the remedy.\n\n| Status | Code | |\n|---|---|---|\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", k.Status, k.Code, k.Title)
	}
	return b.String(), nil
}
