package question

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed vocabulary.yaml
var vocabularyFile []byte

//go:embed facts.yaml
var factsFile []byte

// vocabulary is vocabulary.yaml, and facts.yaml.
type vocabulary struct {
	Words    map[string][]string // with the same meaning in patterns, by name
	Intents  []entry
	Orders   []struct{ Say, As string }
	Symptoms []entry
	Kinds    map[string][]string // the words for each kind
	Facts    []struct {
		Fact         string
		Any, Narrows []string
		At           map[string]string
	}
}

// entry is an intent or a symptom with its patterns.
type entry struct {
	Intent, Symptom string
	Any             []string
	Not             []string // patterns of sentences that have the words by chance
}

var (
	vocab = readVocabulary(vocabularyFile, factsFile)
	// rules are tried in order.
	rules = vocab.rules()
	// orders are applied in order.
	orders = vocab.orders()
	// symptoms are looked for in order; a sentence may name several.
	symptoms = vocab.symptoms()
	// facts are looked for in order; the words of one are not those of another.
	facts = vocab.facts()
	// kinds maps every word for a kind to that kind, and pairs those of two words to one word for it.
	kinds, pairs = vocab.kinds()
)

// readVocabulary panics on an error in the files, which are part of the program.
func readVocabulary(files ...[]byte) vocabulary {
	var v vocabulary
	for _, file := range files {
		d := yaml.NewDecoder(bytes.NewReader(file))
		d.KnownFields(true)
		if err := d.Decode(&v); err != nil {
			panic(fmt.Sprintf("vocabulary: %v", err))
		}
	}
	return v
}

// anyKind and templateKind are the keys of facts that objects of every kind have, or those with a pod template.
const anyKind, templateKind = "any", "template"

// podSpecs are the paths of the pod's spec in the kinds that have one.
var podSpecs = map[string]string{
	"pod": ".spec", "deployment": ".spec.template.spec", "statefulset": ".spec.template.spec", "daemonset": ".spec.template.spec", "replicaset": ".spec.template.spec",
	"job": ".spec.template.spec", "cronjob": ".spec.jobTemplate.spec.template.spec",
}

func (v vocabulary) facts() []Fact {
	var all []Fact
	for _, e := range v.Facts {
		f := Fact{Name: e.Fact, paths: map[string][]string{}, narrows: e.Narrows, expr: v.compile(e.Any)}
		for of, at := range e.At {
			paths := strings.Fields(at)
			for kind := range strings.FieldsSeq(of) {
				if kind != templateKind {
					f.paths[kind] = paths
					continue
				}
				for templated, spec := range podSpecs {
					for _, path := range paths {
						f.paths[templated] = append(f.paths[templated], spec+path)
					}
				}
			}
		}
		all = append(all, f)
	}
	return all
}

func (v vocabulary) rules() []rule {
	var all []rule
	for _, e := range v.Intents {
		at := slices.Index(intentNames[:], e.Intent)
		if at < 0 {
			panic(fmt.Sprintf("vocabulary.yaml: there is no intent %q", e.Intent))
		}
		all = append(all, rule{Intent(at), v.compile(e.Any), v.compile(e.Not)})
	}
	return all
}

func (v vocabulary) orders() []order {
	var all []order
	for _, o := range v.Orders {
		all = append(all, order{Pattern("(?i)" + o.Say), o.As})
	}
	return all
}

func (v vocabulary) symptoms() []sign {
	var all []sign
	for _, e := range v.Symptoms {
		at := slices.Index(symptomNames[:], e.Symptom)
		if at < 0 {
			panic(fmt.Sprintf("vocabulary.yaml: there is no symptom %q", e.Symptom))
		}
		all = append(all, sign{Symptom(at), v.compile(e.Any)})
	}
	return all
}

func (v vocabulary) kinds() (kinds, pairs map[string]string) {
	kinds, pairs = map[string]string{}, map[string]string{}
	for kind, all := range v.Kinds {
		for _, word := range all {
			if !strings.Contains(word, " ") {
				kinds[word] = kind
				learn(word)
				continue
			}
			pairs[word] = all[0]
			if strings.HasSuffix(word, "s") && !strings.HasSuffix(all[0], "s") || strings.HasSuffix(word, "es") {
				pairs[word] = all[1]
			}
		}
	}
	return kinds, pairs
}

var namedWords = regexp.MustCompile(`\{([^}]*)\}`)

// compile joins patterns into one expression; without patterns it returns nil.
func (v vocabulary) compile(patterns []string) *regexp.Regexp {
	var all []string
	for _, pattern := range patterns {
		expr := namedWords.ReplaceAllStringFunc(pattern, func(name string) string {
			list := v.Words[strings.Trim(name, "{}")]
			if list == nil {
				panic(fmt.Sprintf("vocabulary.yaml: there are no words %s", name))
			}
			return "(?:" + strings.Join(list, "|") + ")"
		})
		expr = strings.NewReplacer(" .. ", `\b.*\b`, "~", `\w*`, "_", `\S+`).Replace(expr)
		if !strings.HasPrefix(expr, "^") {
			expr = `\b(?:` + expr + `)`
		}
		if !strings.HasSuffix(pattern, "$") {
			expr += `\b`
		}
		all = append(all, expr)
	}
	if all == nil {
		return nil
	}
	return Pattern(strings.Join(all, "|"))
}

// webhookWord replaces the word webhook in a question. That word itself names no kind: in a request for a change it
// means a workload of that name.
const webhookWord = "webhookconfiguration"

// gatewayWord and routeWord replace the plurals gateways and routes in a question. The words themselves name no kind:
// many workloads have them as names. For the singular only the cluster can decide.
const (
	gatewayWord = "gatewayobjects"
	routeWord   = "routeobjects"
)

// KindOf returns the kind that a word in lower case names, in the singular, plural or short, or "".
func KindOf(word string) string { return kindOf(word) }

// kindOf returns the kind that a word names, or "". It also accepts kind.group.
func kindOf(low string) string {
	if first, group, ok := strings.Cut(low, "."); ok {
		if !builtinGroups[group] && !strings.HasSuffix(group, ".k8s.io") {
			return "" // pods.policy.example.com is the name of a webhook
		}
		low = first
	}
	return kinds[low]
}

// builtinGroups are the groups that may follow a kind, besides those under k8s.io.
var builtinGroups = setOf("apps batch autoscaling policy extensions v1")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// fillers mean nothing in a request for a change.
var fillers = Words(`the a an me us my our its their of for on to at with from by into as please now again right away thanks thank you asap immediately
	quickly quick just too also and & then replicas replica instances copies count number memory mem ram cpu limit limits request requests image
	images tag version versions env environment variable variables var revision rev release rollout rolling restart back up down it that this them
	these those both all everything each one namespace cluster container containers taint label labels annotation workload app's value selector
	every previous last good old first running resources resource budget size scheduled schedule`)

// No word of common is a kind word; pronouns are looked up separately.
var pronouns = Words("it that this them these those they both")

var severals = Words("both all everything each every")

// numbers are number words.
var numbers = map[string]int32{"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
