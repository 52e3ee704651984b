package question

import "strings"

// english are everyday words about software and its users. They are not misspellings, and not reported if they mean
// nothing for the question; in the place of a name they are names.
var english = setOf(`ate eaten able accept access account across act action active actually add address admin advance afraid aim air alert alive allow almost along alright altogether
	amount angle another answer appear apply area arrange arrive article aside assume attach attempt attend author average avoid aware away awful baby bad badge balance band bank
	bar bare base basic basket batch bear beat because become begin behave behaviour behavior being believe belong besides beyond bit blame blind blink bloat blow board body book boot
	border born bottom bounce bound box brain branch breathe bridge brief bright bring browse browser browsers budget buffer bug bulk bundle burst business busy button bypass call camera
	cancel candidate card care careful cart case cash catch category caught cease center central certificate certificates chain chance channel charge chart chat cheap check child chip choke choose
	chunk circle claim class clean clear click client clients climb clock close closed cloud club code coffee collect come comment commit common company compare compile complete compute
	concern confuse congest consider consist consistent constant consume contact contain content contents context continue control convert cook cookie cool corner corrupt cost could course cover
	craft crawl create credit critical crowd cry current currently cut cycle damage dance danger dark dashboard data database databases date deal debt decent decide decline deep default
	defect degrade delay demand demo deny depend design desk detect develop device devices differ different difficult dig direct directory disappoint disconnect disconnected discover disk display
	distance distribute document documents domain dot double doubt download draft drag draw dream drift drive drop dry duplicate duration during duty each eager earlier early earn ease east
	easy eat edge edit effort either elapse else email empty encode end endless engine engineer enjoy enter entry equal escape especially evaluate even evenly eventually every evidence exact
	example except excess exchange excuse execute exhaust expect expensive explode explore export extra extreme eye face fact fade fair fairly faith fake fall false familiar family
	famous fan far fashion fault fear feature features feed feel feels felt fetch field figure file files fill filter final finally fine finger firm fish fit fix flag flags flap
	flash flat flight flip float flood floor flow fluctuate flush fly focus folder folks follow food foot forget form formal format fortunate forward found frame frames freeze freezes
	frequent fresh freshly friend front froze frozen full fun function funny furious further future gap garbage gate gather general get ghost giant gift glad glitch goal good graph
	great green greet ground group grow guard guest guide guy habit half halt halted handle hand happy hard hardly hate head hear heart heat height held helper hidden hide hint
	history hit hits hold holds hole holiday home honest hook hope horrible hot hotel household huge human hundred hungry hurry hurt ice icon ignore ill image imagine immediate impossible
	impression improve include incoming inconsistent incorrect increase indeed index individual infinite inform initial inner input insert inside insist instance instant instead intend
	interest intermittent intermittently interval invoice issue item items jam jammed join journey judge jump junk keen key kick kid kind knock labour lag laggy lamp land language laptop
	large late launch law layer lazy lead leak leaks leaking learn leave length less lesson letter level library lie life light likely line lines link links list listen little local locate
	location lock locked login logins logout lonely long loose lose loss lost loud love low luck machine machines magic mail main mainly maintain maintenance manage manager mark market mass
	master match material matter matters maximum mayhem meal mean measure media medium meet meeting melt member mention menu merge mess message method middle midnight might mild million mind
	minimum minor mirror misconfigured misplaced miss mistake mix mobile mode model moment money monitor monster mood moon move moves movie much multiple music mute mystery name narrow
	nasty near nearly neat necessary neither nervous network neutral nice noise noisy noon normal normally north note nothing noticeable number object obvious occasion occasionally
	occur odd offer office offline often old older once online onto open opens operate operation opinion option orders order ordinary origin original other ought outer outgoing output outright
	overload overloaded overnight overview own owner pace package packet packets page pages pain panel panic paper parse part partial partially partly partner party pass password past path
	pattern pause pay payment payments peak peer pending people perform performance period permanent permit person phone photo phrase physical pick picture piece pile ping pink pipe pipeline
	pity plain plan planet platform play player please plenty plug point poll polls poor pop popular position possible post power practical practice prefer prepare present press pressure
	pretty prevent price prices primary private probably procedure proceed process processes product products profile profit progress project promise prompt proof proper properly protect proud
	prove provide proxy publish purchase pure purpose push quality quarter queries query question queue queues quiet quit quota random rare rarely rather raw reach react read reads reader real
	reality realize rebuild receipt recipe recognise recognize record records recover red redirect refer reference refill refresh refund refuse refuses regard region register regret regular
	reject relate related relation relative reliable reliably rely remember remind remote render repeat repeatedly replace reply replicate replicated replicates replication request require
	research reserve resize respect respond rest result results retire retry retries return reveal reverse revise ride ring ringing risk road robot rock roof root rotate rough round route
	routine row rubbish rude rule rumour rush rust safe sale sales sample save scan scatter scene schema science scope score scream screen screens script search season seat
	second section secure security select sell send sense sensible sentence separate sequence series session sessions settle settles settlement settlements setting settings setup several severe
	shadow shake shall shape share sharp shift shine ship shipment shipments shipping shock shop short shorten shout show shut shutdown sick side sight sign signal silence silent silently similar
	simple simply single site situation size skin skip sky slice slide slight slightly slip slot slowness slower small smart smell smoke smooth soft solid solution solve song soon sorry sort
	sound source south space spam spare speak special spend spike spikes spill spin spins spinning split spoil spot spread spring stable stage stale stalled stall stalls stand standard
	star start state statement station steady steal step stick still stop store storm story strain strange stream streams strength stress stretch strict string strip strong structure
	struggle struggles struggling student stuff stupid stutter stutters style subject submit success sudden suddenly suffer suffers suffering suggest suit sum summer super supply support suppose
	sure surface surprise surprising survive suspect suspicious swap sweet swim switch symptom symptoms sync syncs system table tables tail talk target task tasks taste teach tear tell
	temporary tend term terrible test text thank theory thick thin thing third though thread threads threat throw throws ticket tickets tidy tight till tiny tip title together tomorrow tone
	tool tools top topic touch tough towards track trade traffic train transfer transfers transaction transactions translate trap travel treat tree tremble trial trick trigger trip trouble
	truck true truly trust truth try tune turn twice twist type typical ugly unavailable unaware uneven unexpectedly unfortunately unhappy unique unit unless unlike unlikely unlock unreliable
	unresponsive unsure unwell until unusual update upon upper upset urgent usable useful useless user usual usually utter vague valid value various vary vast verify version very video view visible
	visit visitor visitors voice volume vote wake walk wall want warm warn warns warning waste watch watches water wave way ways weak wear weather web website week weigh weird welcome west wet
	wheel while white whole wide wild will win wind window winter wipe wire wise wish wonder wood word words work world worried worry worth wrap wreck write wrong yellow yet zone zones
	unstable misbehave misbehaves misbehaving malfunction malfunctions blank black blue stopped crawls crawling hiccup hiccups hammer hammered outdated stays mostly entirely completely totally
	fully barely simultaneously meanwhile therefore however although whereas despite hence thus otherwise beside behind beneath around against toward upstairs regarding concerning
	colleague colleagues boss manager managers developer developers ops operator operators engineers night nights lunch breakfast monday tuesday wednesday thursday friday saturday sunday
	january february march april june july august september october november december noon maintenance`)

// isEnglish reports whether a word is one of english, or a form of one.
func isEnglish(low string) bool {
	if english[low] || everyday[low] {
		return true
	}
	if stem, ok := strings.CutPrefix(low, "un"); ok && len(stem) > 4 && isEnglish(stem) {
		return true
	}
	for _, suffix := range []string{"ing", "ed", "es", "s", "ly", "er", "ers", "d"} {
		stem, ok := strings.CutSuffix(low, suffix)
		if !ok || len(stem) < 3 {
			continue
		}
		if english[stem] || english[stem+"e"] || everyday[stem] {
			return true
		}
		if n := len(stem); stem[n-1] == stem[n-2] && english[stem[:n-1]] || suffix != "s" && stem[n-1] == 'i' && english[stem[:n-1]+"y"] {
			return true
		}
	}
	return false
}

// Costs of reading one word as another: typing errors are more likely than a different word.
const (
	transposed = iota + 1 // two letters swapped
	dropped               // one letter missing or extra
	replaced              // one letter replaced
	twoEdits
	unlike
)

// mistyped returns how unlikely it is that a word is a misspelling of another. distance counts edits.
func mistyped(word, meant string, distance func(a, b string) int) int {
	switch d := distance(word, meant); {
	case d == 1 && len(word) == len(meant):
		if isTransposed(word, meant) {
			return transposed
		}
		if len(word) > 5 {
			return replaced
		}
	case d == 1 && len(word) > 3:
		return dropped
	case d == 2 && len(word) > 6 && len(meant) > 5 && word[0] == meant[0]:
		return twoEdits
	}
	return unlike
}

func isTransposed(a, b string) bool {
	for i := range len(a) - 1 {
		if a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// NearestWord returns the English word or kind that a misspelt word most likely means, or "". Short words resemble too
// many others.
func NearestWord(unknown string, distance func(a, b string) int) string {
	if len(unknown) < 4 || isEnglish(unknown) {
		return ""
	}
	best, cost := "", unlike
	consider := func(word string) {
		if c := mistyped(unknown, word, distance); c < cost || c == cost && c < unlike && word < best {
			best, cost = word, c
		}
	}
	for word := range common {
		if len(word) > 2 {
			consider(word)
		}
	}
	for word := range kinds {
		if len(word) > 2 {
			consider(word)
		}
	}
	return best
}

// WordSet returns the set of the words in a blank-separated list.
func WordSet(words string) map[string]bool { return setOf(words) }

// IsOrdinary reports whether a word is an everyday word, which may still be a name.
func IsOrdinary(word string) bool { return common[word] || everyday[word] || isEnglish(word) }
