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

// vocabulary is vocabulary.yaml.
type vocabulary struct {
	Words    map[string][]string // with the same meaning in patterns, by name
	Intents  []entry
	Symptoms []entry
	Kinds    map[string][]string // the words for each kind
}

// entry is an intent or a symptom with its patterns.
type entry struct {
	Intent, Symptom string
	Any             []string
	Not             []string // patterns of sentences that have the words by chance
}

var (
	vocab = readVocabulary(vocabularyFile)
	// rules are tried in order.
	rules = vocab.rules()
	// symptoms are looked for in order; a sentence may name several.
	symptoms = vocab.symptoms()
	// kinds maps every word for a kind to that kind, and pairs those of two words to one word for it.
	kinds, pairs = vocab.kinds()
)

// readVocabulary panics on an error in the file, which is part of the program.
func readVocabulary(file []byte) vocabulary {
	var v vocabulary
	d := yaml.NewDecoder(bytes.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("vocabulary.yaml: %v", err))
	}
	return v
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
	return regexp.MustCompile(strings.Join(all, "|"))
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
var fillers = setOf(`the a an me us my our its their of for on to at with from by into as please now again right away thanks thank you asap immediately
	quickly quick just too also and & then replicas replica instances copies count number memory mem ram cpu limit limits request requests image
	images tag version versions env environment variable variables var revision rev release rollout rolling restart back up down it that this them
	these those both all everything each one namespace cluster container containers taint label labels annotation workload app's value selector
	every previous last good old first running resources resource budget size scheduled schedule`)

// common are words of everyday English and of talk about clusters. None is taken for a name unless it is in a place
// where only a name can be.
var common = setOf(`i me we us you he she they who whom whose which what where when why how is am are was were be been being do does did done doing have
	has had having will would shall should can could may might must not no yes nor never none nothing and or but if then else so because while until
	unless after before since during about across above below over under in out off through between among via per than too very only own same such more most
	less least some any each few many much other another anything something everything someone somebody anyone anybody nobody else ever still yet
	already again always often sometimes maybe perhaps later soon tonight overnight tomorrow today yesterday ago hour hours minute minutes day days week night
	here there now just really quite actually currently right wrong bad good fine ok okay great nice well better best worse worst new old big small
	high low full empty slow fast long short hot cold sure certain possible safe dangerous important urgent critical serious weird strange odd
	broken break breaks broke breaking down up dead dying die dies died alive fail fails failed failing failure failures error errors err problem
	problems issue issues trouble troubles incident outage bug bugs crash crashes crashed crashing crashloop crashloopbackoff crashlooping restart
	restarts restarted restarting loop loops looping backoff oom oomkilled oomkill killed kill pending stuck hanging hung hang hangs terminating
	starting start starts started stop stops stopped stopping running run runs ran unready ready notready unhealthy healthy health work works working
	worked happening happens happened happen going go goes went gone coming come comes keep keeps kept get gets getting got give gives given take takes
	make makes made see sees saw look looks looking show shows tell tells explain describe list check find found help helps need needs want wants
	know think believe guess suppose seem seems mean means say says said ask asks try tries trying tried let use uses used using fix fixes fixed
	repair change changes changed touch touches touched deploy deploys deployed deploying deployment update updates updated scale scales scaled scaling
	delete deletes deleted deleting remove removed roll rolled rolling back undo revert rollback resume suspend suspended pause paused drain drained draining cordon
	evict evicted apply applied set sets raise bump increase lower reduce patch expose label annotate reach reaches reachable unreachable connect connects
	connecting connection connections traffic request requests response responses respond responding responds answer answers timeout timeouts time out
	slow latency dns network networking http https tcp udp ip port ports url urls host hosts hostname access denied forbidden permission permissions rights
	allowed role roles account accounts log logs logging message messages trace metric metrics memory mem ram cpu disk storage volume volumes mount
	mounts image images tag tags version versions registry pull pulls pulled pulling container containers init sidecar probe probes liveness readiness
	startup env environment variable variables config configuration configs key keys value values password passwords token tokens credential credentials
	plain text plaintext hardcoded yaml json name names named called namespace namespaces cluster clusters object objects resource resources workload workloads
	app apps application applications program programs process thing things stuff system platform site website page backend frontend everything
	kind kinds type types state states status condition conditions reason reasons cause causes root why summary overview report details detail info
	information usage use capacity room free headroom full total top quota quotas limit limits usage utilization consumption consuming consume hog hogs most
	biggest largest highest count counts number rate percent percentage recent recently latest last past first next previous history revision revisions
	release releases rollout rollouts warning warnings event events external externally public publicly exposed internet outside inside internal idle unused
	wasted service services pod pods node nodes job jobs secret secrets please thanks thank hello hi hey pls wtf lol omg hmm um uh well dear also instead
	without with within from to for of on at by as into onto the a an this that these those it its my our your their his her them themselves itself
	one two three four five six seven eight nine ten zero both all none half every whole entire able unable cannot exactly anymore
	suddenly randomly constantly repeatedly forever lately weekend schedule scheduled schedulable scheduling unschedulable place placed fits fit
	waiting wait waits sleep sleeping serving serve serves served handle handles load loads heavy users user customers customer people team person
	happy sad mad angry tired kubectl helm argo cd terraform git prod production staging dev test testing tests debug diagnose diagnosing investigate
	troubleshoot analyse analyze inspect review audit figure understand happening live doing done fire burning blocked blocking block blocks throttled
	enough lot lots lack lacks lacking missing absent exist exists existing unknown invalid refused refuse refuses rejected reject expired expire expires reset bye
	surprise surprises fault faults culprit culprits certificate certificates cert certs tls ssl x509 handshake handshakes
	autoscale autoscaling autoscaler balance balancer balancers loadbalancer loadbalancers nodeport nodeports ingress ingresses replica replicas endpoints endpoint
	policy policies rule rules drains plan plans step steps side effect effects risk risky impact blast radius worth ready-to second seconds moment while
	helped helping carefully gently manually yourself yourselves himself herself myself idea ideas sounds sounded looked seemed told typed wrote proposed
	finish finishes finished finishing everywhere anywhere somewhere nowhere hangs preempted displaced throttle throttling unexpected
	af asf tbh ffs smh idk lmk imo damn bloody fucking fkn omfg ugh argh kinda sorta
	though although whereas despite whether till suggested asking claims claimed reported easy hard difficult fast slowly badly apparently obviously supposedly reportedly`)

// everyday are further English words. They are not misspellings, but are names in the place of a name: people call
// namespaces "reports" and "uploads".
var everyday = setOf(`return returns returned drop drops dropped lose loses losing write writes writing bucket buckets mails emails queues queued arrive arrives
	arrived deliver delivers delivered doubt produce produces produced leave leaves leaving left lunch everybody stand stands hand hands build builds building
	parcel parcels ordered pack packs packed export exports import imports upload uploads uploading download downloads send sends sending sent
	receive receives received save saves saved stores stored print prints printed render renders rendered sign signed buy buys
	searches searching indexes indexed syncs synced copy copies copied refresh refreshes appear appears
	appeared stays stay stayed remain remains grow grows growing grew shrink shrinks rise rises rising fall falls falling jump jumps spike spikes reconnect
	reconnects reconnecting forget forgets forgot accept accepts accepted finish ignore ignores ignored skip skips skipped miss misses missed morning evening
	afternoon weeks month months year years upgrade upgraded upgrades migration migrated since colour color white black blank duplicate duplicates twice
	once double half wrongly correct correctly only report reports reported complain complains complained notice noticed`)

// No word of common is a kind word; pronouns are looked up separately.
var pronouns = setOf("it that this them these those they both")

var severals = setOf("both all everything each every")

// numbers are number words.
var numbers = map[string]int32{"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}

// nouns are common words that people also use as names; they count if the cluster has such an object.
var nouns = setOf(`app apps application applications backend frontend site website page system platform test testing tests config users user users customer
	prod production staging dev live git account accounts log logs logging audit report metrics search storage registry schedule trace token
	balance audit internal public role stuff team monitoring`)
