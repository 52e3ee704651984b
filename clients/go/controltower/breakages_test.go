package controltower_test

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

// Answers that break the contract, and exchanges that break down.

func brokenExchanges() []recorded {
	early := expectation{Error: "protocol"} // before a request id was seen
	protocol := expectation{Error: "protocol", RequestID: requestID}
	integrity := expectation{Error: "integrity", RequestID: requestID}
	run := func(name string, r *reply, want expectation) recorded {
		return answeredCall(name, "get_run", askRun, getRequest(runTarget), r, want)
	}
	list := func(name string, a []byte, target string, r *reply) recorded {
		return answeredCall(name, "list_runs", a, getRequest(target), r, protocol)
	}
	// body returns an answer whose digest is that of the document a lenient parser reads.
	body := func(text, lenient string) *reply {
		return documentReply(200, mustParse(lenient)).write(text)
	}
	moved := documentReply(302, mustParse(`{"location":"http://127.0.0.1/"}`)).set("Location", "http://127.0.0.1/")
	wrongEvidence := evidenceAnswer().swap(`"evidence_report_digest":"sha256:d3`, `"evidence_report_digest":"sha256:d4`).sealed()
	wrongReport := evidenceAnswer().swap(`"failed"`, `"passed"`).sealed()
	other := fixture.Report()
	other.OrchestratorVersion = "0.3"
	elsewhere := fixture.Report()
	elsewhere.RunID = "run/demo:0003"
	inspect := func(name string, r *reply, want expectation) recorded {
		return answeredCall(name, "inspect_run_evidence", encodeArgs("report", reportText()), postRequest("/run-evidence/inspect", reportText()), r, want)
	}
	envelopeAs := func(name, from, to string) recorded {
		return run(name, errorReply(404, "run_not_found", false, nil).swap(from, to).sealed(), protocol)
	}
	events := fixtureEvents()
	backwards := documentReply(200, document.NewList([]spine.Event{events[1], events[0]}, 50, ""))
	forged := documentReply(200, document.NewList(events[:1], 50, "")).swap(`"state":"proposed"`, `"state":"decided"`).sealed()
	connection := fixture.Connections()[0]
	return []recorded{
		run("one byte changed", runAnswer(runID).swap("proposed", "proposeD"), integrity),
		run("the digest of another document", runAnswer(runID).set("X-SVC-Content-Digest", fixture.Digest("1")), integrity),
		run("a float turned integer", documentReply(200, mustParse(`{"a":1.0}`)).write(`{"a":1}`), integrity),
		run("no digest", runAnswer(runID).drop("X-SVC-Content-Digest"), protocol),
		run("digest without its prefix", runAnswer(runID).set("X-SVC-Content-Digest", strings.Repeat("1", 64)), protocol),
		run("digest twice", func() *reply { r := runAnswer(runID); return r.also("X-SVC-Content-Digest", r.digest()) }(), protocol),
		run("no request id", runAnswer(runID).drop("X-Request-ID"), early),
		run("request id with a space", runAnswer(runID).set("X-Request-ID", "a b"), early),
		run("request id of 129 characters", runAnswer(runID).set("X-Request-ID", strings.Repeat("a", 129)), early),
		run("request id twice", runAnswer(runID).also("X-Request-ID", requestID), early),
		run("302 to another place", plainReply(302, "Moved.").set("Location", "http://127.0.0.1/"), early),
		run("302 in JSON", moved, protocol),
		run("203", func() *reply { r := runAnswer(runID); r.status = 203; return r }(), protocol),
		run("an HTML page", runAnswer(runID).set("Content-Type", "text/html"), early),
		run("problem document", runAnswer(runID).set("Content-Type", "application/problem+json"), early),
		run("another charset", runAnswer(runID).set("Content-Type", "application/json; charset=latin-1"), early),
		run("no media type", runAnswer(runID).drop("Content-Type"), early),
		run("414 of the parser", plainReply(414, "The request line is longer than 65536 bytes."), early),
		run("431 of the parser", plainReply(431, "The request has more than 99 header fields."), early),
		run("400 of the parser", plainReply(400, "A header field of the request is malformed."), early),
		run("another run", runAnswer("run/demo:0009"), protocol),
		run("another kind", runAnswer(runID).swap("svc-control-tower-run-response", "svc-control-tower-run").sealed(), protocol),
		run("another schema version", runAnswer(runID).swap(`"schema_version":"0.1"}`, `"schema_version":"0.2"}`).sealed(), protocol),
		run("another API version", runAnswer(runID).swap(`"v1"`, `"v2"`).sealed(), protocol),
		run("200 that is not ok", runAnswer(runID).swap(`"ok":true`, `"ok":false`).sealed(), protocol),
		run("an error envelope with 200", func() *reply { r := errorReply(404, "run_not_found", false, nil); r.status = 200; return r }(), protocol),
		run("404 that is no envelope", func() *reply { r := runAnswer(runID); r.status = 404; return r }(), protocol),
		envelopeAs("envelope with an unknown key", `"ok":false`, `"ok":false,"trace":"x"`),
		envelopeAs("envelope with an unknown key inside", `"retryable":false`, `"retryable":false,"trace":"x"`),
		envelopeAs("envelope that claims to be ok", `"ok":false`, `"ok":true`),
		envelopeAs("envelope whose code is none", `"run_not_found"`, `"Run Not Found"`),
		envelopeAs("envelope without a message", `"What is wrong, in a sentence."`, `""`),
		envelopeAs("envelope that may be a text", `"retryable":false`, `"retryable":"no"`),
		envelopeAs("envelope with empty details", `"code"`, `"details":null,"code"`),
		run("a list", body(`[{}]`, `[{}]`), protocol),
		run("nothing", runAnswer(runID).write(""), protocol),
		run("a key twice", body(`{"a":1,"a":2}`, `{"a":2}`), protocol),
		run("NaN", body(`{"a":NaN}`, `{}`), protocol),
		run("half a surrogate pair", body(`{"a":"\ud800"}`, `{}`), protocol),
		run("no UTF-8", body("{\"a\":\"\xff\"}", `{}`), protocol),
		run("nesting of 513", body(`{"a":`+strings.Repeat("[", 512)+strings.Repeat("]", 512)+`}`, `{}`), protocol),
		run("an integer of 4,301 digits", body(`{"a":`+strings.Repeat("1", 4301)+`}`, `{}`), protocol),
		run("a float beyond binary64", body(`{"a":1e400}`, `{}`), protocol),
		run("more behind the document", body(`{}{}`, `{}`), protocol),
		run("no length", runAnswer(runID).drop("Content-Length"), early),
		run("chunks", runAnswer(runID).drop("Content-Length").also("Transfer-Encoding", "chunked"), early),
		run("a length beyond 64 MiB", runAnswer(runID).set("Content-Length", fmt.Sprint(64<<20+1)), early),
		run("a length that is none", runAnswer(runID).set("Content-Length", "+5"), early),
		run("a folded field", runAnswer(runID).also("X-Folded\r\n", "x"), early),
		answeredCall("attempts of another run", "get_run_attempts", askRun, getRequest(runTarget+"/attempts"), documentReply(200, document.NewRunAttempts(runNamed("run/x"))), protocol),
		answeredCall("evidence of another run", "get_run_evidence", askRun, getRequest(runTarget+"/evidence"), evidenceAnswer(), protocol),
		answeredCall("evidence under another digest", "get_run_evidence", encodeArgs("run_id", "run/demo:0002"), getRequest("/runs/run/demo:0002/evidence"), wrongEvidence, integrity),
		answeredCall("evidence changed under its digest", "get_run_evidence", encodeArgs("run_id", "run/demo:0002"), getRequest("/runs/run/demo:0002/evidence"), wrongReport, integrity),
		answeredCall("another work unit", "get_work_unit", encodeArgs("work_unit_id", "work/x"), getRequest("/work-units/work/x"), workUnitAnswer(), protocol),
		answeredCall("another project", "get_project", encodeArgs("project_id", "project/x"), getRequest("/projects/project/x"), projectAnswer(), protocol),
		answeredCall("another connection", "get_connection", encodeArgs("connection_id", "x"), getRequest("/connections/x"), documentReply(200, document.NewConnection(connection)), protocol),
		answeredCall("OpenAPI document without paths", "get_openapi", nil, getRequest("/openapi.json"),
			documentReply(200, mustParse(`{"openapi":"3.1.0","info":{},"x-svc-kind":"svc-openapi","x-svc-schema-version":"0.1"}`)), protocol),
		inspect("snapshot under another digest", inspectionReply(fixture.Report()).swap(`"snapshot_digest":"sha256:`, `"snapshot_digest":"sha255:`).sealed(), integrity),
		inspect("snapshot of another report", inspectionReply(other), integrity),
		inspect("snapshot of another run", inspectionReply(elsewhere), protocol),
		list("cursors that disagree", nil, "/runs", runsPage(2, "YQ==", "run/a").swap(`"next_cursor":"YQ==","page"`, `"next_cursor":null,"page"`).sealed()),
		list("no cursor at all", nil, "/runs", runsPage(2, "", "run/a").swap(`"next_cursor":null,"page":{"limit":2,"next_cursor":null}`, `"page":{"limit":2}`).sealed()),
		list("empty cursor", nil, "/runs", documentReply(200, document.List[spine.Run]{SchemaVersion: "0.1", Kind: "svc-list", Items: []spine.Run{}, NextCursor: pointerTo(""),
			Page: document.Page{Limit: 50, NextCursor: pointerTo("")}})),
		list("page of another limit", encodeArgs("limit", 3), "/runs?limit=3", runsPage(2, "")),
		list("page of limit 201", nil, "/runs", runsPage(201, "")),
		list("more items than the limit", nil, "/runs", runsPage(1, "", "run/a", "run/b")),
		list("a run of another state", encodeArgs("state", "cancelled"), "/runs?state=cancelled", runsPage(50, "", "run/a")),
		list("a run of another project", encodeArgs("project_id", "project/x"), "/runs?project_id=project%2Fx", runsPage(50, "", "run/a")),
		list("an item that is no run", nil, "/runs", documentReply(200, document.NewList(events, 50, ""))),
		list("an item that is no object", nil, "/runs", documentReply(200, document.NewList([]string{"run/a"}, 50, ""))),
		answeredCall("events that do not rise", "list_events", nil, getRequest("/events"), backwards, protocol),
		answeredCall("an event whose payload was changed", "list_events", nil, getRequest("/events"), forged, integrity),
		answeredCall("an event of another run", "list_events", encodeArgs("run_id", "run/x"), getRequest("/events?run_id=run%2Fx"), documentReply(200, document.NewList(events, 50, "")), protocol),
	}
}

func transportExchanges() []recorded {
	full := runAnswer(runID).text()
	fault := expectation{Error: "transport"}
	run := func(name, then string, want expectation, pieces ...piece) recorded {
		var client clientSettings
		if then != "" {
			client.Timeout = 0.4 // it will run out
		}
		return recorded{Name: name, Client: client, Call: "get_run", Args: askRun,
			Exchanges: []rawExchange{{Request: getRequest(runTarget), Response: append([]piece{}, pieces...), Then: then}}, Expect: want}
	}
	whole := func(name, then string, pieces ...piece) recorded {
		c := run(name, then, expectDocument(runAnswer(runID)), pieces...)
		c.Client.Timeout = 0
		return c
	}
	inHead := len(runAnswer(runID).head()) / 2
	return []recorded{
		run("closed without an answer", "", fault),
		run("cut in the head", "", fault, piece{Text: full[:inHead]}),
		run("cut behind the head", "", fault, piece{Text: runAnswer(runID).head()}),
		run("cut in the body", "", fault, piece{Text: full[:len(full)-1]}),
		run("no answer in time", "hold", fault),
		run("no whole head in time", "hold", fault, piece{Text: full[:inHead]}),
		run("no whole body in time", "hold", fault, piece{Text: full[:len(full)-1]}),
		run("bytes that drip for ever", "drip", fault, piece{Text: "HTTP/1.1 200 OK\r\nX-Drip: "}),
		run("another protocol", "", expectation{Error: "protocol"}, piece{Text: "SSH-2.0-OpenSSH_9.2\r\n\r\n"}),
		run("another version of HTTP", "", expectation{Error: "protocol"}, piece{Text: strings.Replace(full, "HTTP/1.1", "HTTP/2.0", 1)}),
		run("a head without end", "", expectation{Error: "protocol"}, piece{Text: "HTTP/1.1 200 OK\r\n"}, piece{Text: "X-Long: " + strings.Repeat("x", 92) + "\r\n", Repeat: 700}),
		whole("one byte at a time", "", piece{Text: full[:64], Bytewise: true}, piece{Text: full[64:]}),
		whole("a server that does not close", "hold", piece{Text: full}),
		whole("HTTP/1.0", "", piece{Text: strings.Replace(full, "HTTP/1.1", "HTTP/1.0", 1)}),
		whole("fields in another case", "", piece{Text: strings.Replace(strings.Replace(full, "X-Request-ID", "x-request-id", 1), "Content-Length:", "CONTENT-LENGTH:", 1)}),
	}
}

// streams

const opening = "retry: 3000\n\n"

func streamHead() *reply {
	return documentReply(200, mustParse("{}")).set("Content-Type", "text/event-stream; charset=utf-8").drop("Content-Length").drop("ETag").drop("X-SVC-Content-Digest").drop("Vary").
		set("X-Accel-Buffering", "no").set("X-Request-ID", requestID).write("").drop("Content-Length")
}

func eventFrame(n int) string { return string(evidencetest.RunEvents()[n-1].Frame()) }

// askStream is the request of a stream from an event on; -1 is from the newest.
func askStream(after int64, target string) rawRequest {
	extra := []string{"Accept", "text/event-stream"}
	if after >= 0 {
		extra = append(extra, "Last-Event-ID", fmt.Sprint(after))
	}
	return getRequest("/events/stream"+target, extra...)
}

func streamCase(name string, after int64, extra []any, want expectation, text string) recorded {
	a := append([]any{"idle_timeout", 20}, extra...)
	if after >= 0 {
		a = append(a, "last_event_id", after)
	}
	return recorded{Name: name, Call: "stream_events", Args: encodeArgs(a...), Expect: want,
		Exchanges: []rawExchange{{Request: askStream(after, ""), Response: []piece{{Text: streamHead().head() + text}}}}}
}

func streamExchanges() []recorded {
	end := func(reason string) string { return ": stream-ended reason=" + reason + "\n\n" }
	ended := func(reason string, events ...int64) expectation {
		e := expectation{RequestID: requestID, EndReason: reason, Events: events}
		if len(events) > 0 {
			e.LastEventID = &events[len(events)-1]
		}
		return e
	}
	both := opening + eventFrame(1) + eventFrame(2) + end("max-duration")
	bytewise := streamCase("one byte at a time", 0, nil, ended("max-duration", 1, 2), "")
	bytewise.Exchanges[0].Response = []piece{{Text: streamHead().head()}, {Text: both, Bytewise: true}}
	filtered := streamCase("filters", 0, []any{"project_id", "project/demo", "filters", map[string]string{"run_id": runID, "event_type": "run.created"}},
		ended("shutdown", 1), opening+eventFrame(1)+end("shutdown"))
	filtered.Exchanges[0].Request = askStream(0, "?project_id=project%2Fdemo&run_id=run%2Fdemo%3A0001&event_type=run.created")
	timed := streamCase("the client's time", -1, []any{"max_seconds", 0.3}, ended("client-max-seconds"), opening)
	timed.Exchanges[0].Then = "hold"
	inFrame := streamCase("the client's time within a frame", 0, []any{"max_seconds", 1}, ended("client-max-seconds", 1), opening+eventFrame(1)+"id: 2\n")
	inFrame.Exchanges[0].Then = "hold"
	counted := streamCase("the client's count", 0, []any{"max_events", 1}, ended("client-max-events", 1), opening+eventFrame(1)+eventFrame(2))
	counted.Exchanges[0].Then = "hold"
	resumed := ended("store-error", 2)
	quiet := ended("max-duration")
	quiet.LastEventID = pointerTo(int64(2))
	return []recorded{
		streamCase("both events", 0, nil, ended("max-duration", 1, 2), both),
		bytewise,
		streamCase("keepalives", 0, nil, ended("max-duration", 1), opening+": keepalive\n\n: keepalive\n\n"+eventFrame(1)+": keepalive\n\n"+end("max-duration")),
		streamCase("resumed", 1, nil, resumed, opening+eventFrame(2)+end("store-error")),
		streamCase("nothing new", 2, nil, quiet, opening+end("max-duration")),
		filtered, timed, inFrame, counted,
		streamCase("a frame of just the bound", 0, []any{"max_frame_bytes", len(eventFrame(1))}, ended("shutdown", 1), opening+eventFrame(1)+end("shutdown")),
		streamCase("an event of a type this client does not know", 0, nil, ended("shutdown", 1),
			opening+strings.ReplaceAll(eventFrame(1), "run.created", "run.touched")+end("shutdown")),
		streamCase("fields in another order", 0, nil, ended("shutdown", 1), opening+reorderFrame(eventFrame(1))+end("shutdown")),
	}
}

func reorderFrame(frame string) string {
	lines := strings.Split(strings.TrimSuffix(frame, "\n\n"), "\n")
	return lines[2] + "\n" + lines[0] + "\n" + lines[1] + "\n\n"
}

// resealEvent puts another payload, or other fields, into an event and seals it again.
func resealEvent(n int, change func(*canon.Object)) string {
	o := evidencetest.RunEvents()[n-1].Value()
	change(o)
	c1, err := canon.C1(o)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", n, evidencetest.RunEvents()[n-1].EventType, c1)
}

func brokenStreams() []recorded {
	fault := func(kind string, events ...int64) expectation {
		e := expectation{Error: kind, Events: events}
		if kind != "transport" {
			e.RequestID = requestID
		}
		if len(events) > 0 {
			e.LastEventID = &events[len(events)-1]
		}
		return e
	}
	bad := func(name, text string, events ...int64) recorded {
		return streamCase(name, 0, nil, fault("protocol", events...), text)
	}
	set := func(key string, v canon.Value) string {
		return opening + resealEvent(1, func(o *canon.Object) { o.Set(key, v) })
	}
	sub := func(from, to string) string {
		if !strings.Contains(eventFrame(1), from) {
			panic("the frame holds no " + from)
		}
		return opening + strings.Replace(eventFrame(1), from, to, 1)
	}
	silent := streamCase("silence", 0, []any{"idle_timeout", 0.3}, fault("transport", 1), opening+eventFrame(1)+"id: 2\n")
	silent.Exchanges[0].Then = "hold"
	bound := func(name, text string, most int, then string, events ...int64) recorded {
		c := streamCase(name, 0, []any{"max_frame_bytes", most}, fault("protocol", events...), text)
		c.Exchanges[0].Then = then
		return c
	}
	// Nothing of these frames is wrong before their size is, so that the bound alone decides.
	unasked := func(name string, size int, idle float64, kind string) recorded {
		c := streamCase(name, 0, []any{"idle_timeout", idle}, fault(kind), "")
		c.Exchanges[0].Response = []piece{{Text: streamHead().head() + opening}, {Text: "x", Repeat: size}}
		c.Exchanges[0].Then = "hold"
		return c
	}
	behind := streamCase("an event not after the one asked for", 2, nil, expectation{Error: "protocol", RequestID: requestID, LastEventID: pointerTo(int64(2))}, opening+eventFrame(2))
	otherRun := streamCase("an event the filter does not ask for", 0, []any{"run_id", "run/x"}, fault("protocol"), opening+eventFrame(1))
	otherRun.Exchanges[0].Request = askStream(0, "?run_id=run%2Fx")
	whole := func(name string, r *reply, want expectation) recorded {
		return answeredCall(name, "stream_events", encodeArgs("idle_timeout", 20, "last_event_id", 0), askStream(0, ""), r, want)
	}
	refused := expectation{Error: "api", StatusCode: 400, Code: "invalid_last_event_id", RequestID: requestID, Details: []byte(`{"latest_sequence":2}`)}
	latest := canon.NewObject(canon.Member{Key: "latest_sequence", Value: canon.NewInt(2)})
	// A stream that breaks in its head has yielded nothing, so the last event is still the requested one.
	early := expectation{Error: "protocol"}
	binary := streamCase("no UTF-8", 0, nil, fault("protocol"), "")
	binary.Exchanges[0].Response = []piece{{Text: streamHead().head() + opening}, {Hex: hex.EncodeToString([]byte("id: 1\nevent: \xff\ndata: {}\n\n"))}}
	end := ": stream-ended reason=shutdown\n\n"
	return []recorded{
		bad("unknown field", sub("event: ", "name: x\nevent: ")),
		bad("a field twice", sub("id: 1\n", "id: 1\nid: 1\n")),
		bad("no id", sub("id: 1\n", "")),
		bad("no data", opening+"id: 1\nevent: run.created\n\n"),
		bad("sequence repeated", opening+eventFrame(1)+eventFrame(1), 1),
		bad("sequence that falls", opening+eventFrame(2)+eventFrame(1), 2),
		bad("another comment", opening+": hi\n\n"),
		bad("a comment within an event", sub("event: ", ": keepalive\nevent: ")),
		bad("an end for no reason of the server's", opening+": stream-ended reason=client-max-events\n\n"),
		bad("more after the end", opening+end+eventFrame(1)),
		bad("no retry field", eventFrame(1)),
		bad("an end without a retry field", end),
		bad("retry field twice", opening+opening),
		bad("retry field with an event", "retry: 3000\n"+eventFrame(1)),
		bad("retry field of no number", "retry: soon\n\n"),
		bad("carriage returns", strings.ReplaceAll(opening+eventFrame(1), "\n", "\r\n")),
		bad("a blank line too much", opening+"\n"+eventFrame(1)),
		bad("no space behind the colon", sub("id: 1", "id:1")),
		bad("id that is not the sequence", sub("id: 1", "id: 2")),
		bad("id with a zero before it", sub("id: 1", "id: 01")),
		bad("id 0", sub("id: 1", "id: 0")),
		bad("event that is not the type", sub("event: run.created", "event: run.cancelled")),
		bad("event_id of another sequence", set("event_id", "evt-000000000002")),
		bad("event_id with too few digits", set("event_id", "evt-1")),
		bad("a key too many", set("note", "x")),
		bad("a key too few", opening+resealEvent(1, func(o *canon.Object) { o.Delete("attempt_id") })),
		bad("a key for another", opening+resealEvent(1, func(o *canon.Object) { o.Delete("attempt_id"); o.Set("attempt", nil) })),
		bad("another kind", set("kind", "svc-run")),
		bad("another schema version", set("schema_version", "0.2")),
		bad("sequence that is a float", set("sequence", canon.Float(1))),
		bad("payload that is no object", set("payload", canon.Array{})),
		bad("a key twice in the data", sub(`{"attempt_id":null`, `{"attempt_id":null,"attempt_id":null`)),
		bad("data that is no JSON", opening+"id: 1\nevent: run.created\ndata: {\n\n"),
		bad("data that is no object", opening+"id: 1\nevent: run.created\ndata: []\n\n"),
		binary,
		streamCase("payload changed", 0, nil, fault("integrity"), sub(`"state":"proposed"`, `"state":"decided"`)),
		behind, otherRun,
		bound("a frame over the bound", opening+eventFrame(1), len(eventFrame(1))-1, ""),
		bound("a frame over the bound that does not end", opening+strings.Repeat("x", 201), 200, "hold"),
		bound("a frame over the bound behind a good one", opening+eventFrame(1)+"id: "+strings.Repeat("1", 700), len(eventFrame(1)), "hold", 1),
		unasked("a frame of just the bound that nobody set", controltower.DefaultMaxFrameBytes, 0.5, "transport"),
		unasked("a frame over the bound that nobody set", controltower.DefaultMaxFrameBytes+1, 20, "protocol"),
		streamCase("cut behind a frame", 0, nil, fault("transport", 1), opening+eventFrame(1)),
		streamCase("cut in a frame", 0, nil, fault("transport", 1), opening+eventFrame(1)+"id: 2\n"),
		streamCase("cut at once", 0, nil, fault("transport"), ""),
		silent,
		whole("refused", errorReply(400, "invalid_last_event_id", false, latest), refused),
		whole("a document", runAnswer(runID), expectation{Error: "protocol", RequestID: requestID}),
		whole("a page", streamHead().set("Content-Type", "text/html").write("<p>"), early),
		whole("no request id", streamHead().drop("X-Request-ID"), early),
		whole("a length", streamHead().write(opening), expectation{Error: "protocol", RequestID: requestID}),
		whole("chunks", streamHead().also("Transfer-Encoding", "chunked"), expectation{Error: "protocol", RequestID: requestID}),
		whole("another status", func() *reply { r := streamHead(); r.status = 206; return r }(), expectation{Error: "protocol", RequestID: requestID}),
	}
}
