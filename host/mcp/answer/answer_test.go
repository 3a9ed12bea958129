package answer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/skillhost/skill/host/ask"
	"github.com/skillhost/skill/sdk"
)

const everything = `{"type":"object","properties":{
	"db":{"type":"string","title":"Database","description":"Which?","oneOf":[{"const":"pg","title":"Postgres"},{"const":"lite","title":"SQLite"}],"default":"lite"},
	"db_other":{"type":"string","title":"Other","maxLength":20},
	"many":{"type":"array","title":"Features","minItems":1,"items":{"anyOf":[{"const":"x","title":"X"},{"const":"y","title":"Y"}]}},
	"sure":{"type":"boolean"},"age":{"type":"integer","minimum":1},"score":{"type":"number"},"mail":{"type":"string","format":"email"},"essay":{"type":"string"}
},"required":["many"]}`

// A world is a server of the page with one question.
type world struct {
	t       *testing.T
	room    *ask.Room
	asked   *ask.Asked
	server  *httptest.Server
	address string
	fails   bool // to record an answer
}

func newWorld(t *testing.T, questions map[string]sdk.Question) *world {
	t.Helper()
	w := &world{t: t}
	w.room = ask.New(ask.Options{Local: func(string) bool { return true }, Record: func(ask.View, string, ask.Reply) error {
		if w.fails {
			return errors.New("no space")
		}
		return nil
	}})
	w.server = httptest.NewServer(New(w.room))
	t.Cleanup(w.server.Close)
	w.room.Offer(func() (string, error) { return w.server.URL + Path, nil })
	w.asked = w.room.Put(context.Background(), &sdk.Call{Tool: "AskUserQuestion", Scope: sdk.Scope{Caller: "local:me", Workspace: "/work"}, Client: sdk.Client{Name: "c"}}, 1, questions)
	if w.asked == nil {
		t.Fatal("the question is not shown")
	}
	w.address = w.asked.Address()
	return w
}

func one(message, schema string) map[string]sdk.Question {
	return map[string]sdk.Question{"q": {Kind: sdk.QuestionForm, Message: message, Schema: json.RawMessage(schema)}}
}

// do sends a request as a browser's page of that origin would, or as none if it
// is "".
func (w *world) do(method, address, origin, body string, change func(*http.Request)) (int, string, http.Header) {
	w.t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	a, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a.StatusCode, string(text), a.Header
}

func (w *world) get() string {
	w.t.Helper()
	status, body, _ := w.do("GET", w.address, "", "", nil)
	if status != 200 {
		w.t.Fatalf("status %d: %s", status, body)
	}
	return body
}

func (w *world) post(values string) (int, string) {
	w.t.Helper()
	status, body, _ := w.do("POST", w.address, w.server.URL, values, nil)
	return status, body
}

func TestPage(t *testing.T) {
	w := newWorld(t, one("Which database?\nSay it.", everything))
	body := w.get()
	for _, want := range []string{"<strong>AskUserQuestion</strong> asks you", "workspace /work", "client c", "Which database?\nSay it.", "<legend>Database</legend>", "Which?",
		`<input type="radio" id="f0.0.1" name="f0.0" value="1" checked>`, `<input type="checkbox" id="f0.2.0" name="f0.2" value="0">`, "<legend>Features <span class=\"must\">required</span></legend>",
		`<input type="text" id="f0.1" name="f0.1" value="" maxlength="20">`, `<input type="number" id="f0.4" name="f0.4" value="" step="1">`, `type="email"`, "<textarea", ">Yes<", ">No<",
		`name="action" value="accept"`, `name="action" value="decline"`, "gives the tool no permission"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, id := range regexp.MustCompile(`<label[^>]* for="([^"]+)"`).FindAllStringSubmatch(body, -1) {
		if strings.Count(body, `id="`+id[1]+`"`) != 1 {
			t.Errorf("a label is for %s, which is there %d times", id[1], strings.Count(body, `id="`+id[1]+`"`))
		}
	}
	if strings.Contains(body, "<script") || strings.Contains(body, "src=") || regexp.MustCompile(`\son[a-z]+=`).MatchString(body) || strings.Contains(body, "http:") {
		t.Errorf("the page has scripts or loads something:\n%s", body)
	}
	// What does not fit is shown again, as it was filled in.
	status, body := w.post("f0.0=0&f0.1=" + strings.Repeat("x", 21) + "&f0.4=0&f0.7=a%0D%0Ab&action=accept")
	if status != 422 || strings.Count(body, `class="fault"`) != 3 || !strings.Contains(body, `name="f0.0" value="0" checked`) || strings.Contains(body, `value="1" checked`) || !strings.Contains(body, ">a\nb</textarea>") || !strings.Contains(body, `role="alert"`) {
		t.Fatalf("status %d: %s", status, body)
	}
	status, body = w.post("f0.0=0&f0.1=with+%C3%B6&f0.2=1&f0.2=0&f0.3=false&f0.7=a%0D%0Ab&action=accept&f0.99=x&csrf=no")
	if status != 200 || !strings.Contains(body, "Thank you") {
		t.Fatalf("status %d: %s", status, body)
	}
	a := w.asked.Take(nil)["q"]
	if a.Action != "accept" || a.Channel != "page" || string(a.Content) != `{"db":"pg","db_other":"with ö","many":["y","x"],"sure":false,"essay":"a\nb"}` {
		t.Errorf("%+v %s", a, a.Content)
	}
	// replayed_token: it is good for one answer.
	if status, body := w.post("f0.2=1&action=accept"); status != 410 || !strings.Contains(body, "not open any more") {
		t.Errorf("status %d: %s", status, body)
	}
	if status, _, _ := w.do("GET", w.address, "", "", nil); status != 410 {
		t.Errorf("status %d", status)
	}
}

func TestDecline(t *testing.T) {
	w := newWorld(t, one("?", everything))
	if status, body := w.post("action=decline"); status != 200 || !strings.Contains(body, "Declined") {
		t.Errorf("status %d: %s", status, body)
	}
	if a := w.asked.Take(nil)["q"]; a.Action != "decline" || a.Content != nil {
		t.Errorf("%+v", a)
	}
}

func TestLink(t *testing.T) {
	w := newWorld(t, map[string]sdk.Question{"q": {Kind: sdk.QuestionURL, Message: "Sign in", URL: "https://example.com/?a=1&b=2"}})
	if body := w.get(); !strings.Contains(body, `<a href="https://example.com/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">`) || !strings.Contains(body, "I have opened it") {
		t.Errorf("%s", body)
	}
	if status, _ := w.post("action=accept"); status != 200 || w.asked.Take(nil)["q"].Action != "accept" {
		t.Errorf("status %d", status)
	}
	w = newWorld(t, map[string]sdk.Question{"q": {Kind: sdk.QuestionURL, URL: "javascript:alert(1)"}}) // dispatch refuses it before
	if body := w.get(); strings.Contains(body, `href="javascript`) {
		t.Errorf("%s", body)
	}
}

// script_in_a_label: what a tool says stays text, in every place.
func TestMaliciousTexts(t *testing.T) {
	evil := `</title></style></textarea><script>alert(1)</script><img src=x onerror=alert(1)>" onfocus="alert(1)" autofocus x="'` + "\u202e\x1b[2J"
	quoted, _ := json.Marshal(evil)
	schema := strings.ReplaceAll(`{"type":"object","properties":{EVIL:{"type":"string","title":EVIL,"description":EVIL,"oneOf":[{"const":EVIL,"title":EVIL}]},
		"many":{"type":"array","title":EVIL,"items":{"enum":[EVIL]}},"text":{"type":"string","title":EVIL,"default":EVIL},"short":{"type":"string","maxLength":200,"default":EVIL}},"required":["many"]}`, "EVIL", string(quoted))
	w := newWorld(t, one(evil, schema))
	_, faulty := w.post("f0.2=" + url.QueryEscape(evil) + "&action=accept")
	if body := w.get(); strings.ContainsAny(body, "\u202e\x1b") {
		t.Errorf("%q", body)
	}
	for _, body := range []string{w.get(), faulty} {
		if strings.Contains(body, "<script") || strings.Contains(body, "<img") || strings.Contains(body, `" onfocus`) {
			t.Errorf("%s", body)
		}
		if strings.Count(body, "</style>") != 1 || strings.Count(body, "</title>") != 1 {
			t.Error("a text has ended an element")
		}
	}
	// The answer has the value as the schema does.
	if status, body := w.post("f0.0=0&f0.1=0&action=accept"); status != 200 {
		t.Fatalf("status %d: %s", status, body)
	}
	var got map[string]any
	want := strings.ToValidUTF8(evil, "\ufffd")
	if err := json.Unmarshal(w.asked.Take(nil)["q"].Content, &got); err != nil || got[want] != want {
		t.Errorf("%v %v", got, err)
	}
}

// wrong_token, dns_rebinding, csrf_post and their likes: each is refused, and the
// question stays open.
func TestRefusals(t *testing.T) {
	w := newWorld(t, one("?", everything))
	other := newWorld(t, one("?", everything))
	at := func(path string) string { return w.server.URL + path }
	token := strings.TrimPrefix(w.address, at(Path))
	good := "f0.2=1&action=accept"
	port := w.server.URL[strings.LastIndex(w.server.URL, ":"):]
	host := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Host = name }
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		method, address, origin, body string
		change                        func(*http.Request)
		status                        int
	}{
		"wrong_token":            {"POST", at(Path + strings.Repeat("a", len(token))), w.server.URL, good, nil, 410},
		"wrong_token_get":        {"GET", at(Path + "x" + token), "", "", nil, 410},
		"token_of_another_host":  {"POST", at(Path + strings.TrimPrefix(other.address, other.server.URL+Path)), w.server.URL, good, nil, 410},
		"no_token":               {"GET", at(Path), "", "", nil, 404},
		"below_the_token":        {"GET", w.address + "/x", "", "", nil, 404},
		"outside":                {"GET", at("/"), "", "", nil, 404},
		"put":                    {"PUT", w.address, w.server.URL, good, nil, 405},
		"options":                {"OPTIONS", w.address, "http://evil.test", "", header("Access-Control-Request-Method", "POST"), 405},
		"csrf_post":              {"POST", w.address, "http://evil.test", good, nil, 403},
		"csrf_other_port":        {"POST", w.address, "http://127.0.0.1:1", good, nil, 403},
		"csrf_null_origin":       {"POST", w.address, "null", good, nil, 403},
		"csrf_cross_site":        {"POST", w.address, "", good, header("Sec-Fetch-Site", "cross-site"), 403},
		"csrf_same_site":         {"POST", w.address, "", good, header("Sec-Fetch-Site", "same-site"), 403},
		"dns_rebinding":          {"GET", w.address, "", "", host("evil.test" + port), 403},
		"dns_rebinding_post":     {"POST", w.address, "http://evil.test" + port, good, host("evil.test" + port), 403},
		"other_port_in_the_name": {"GET", w.address, "", "", host("127.0.0.1:1"), 403},
		"no_port_in_the_name":    {"GET", w.address, "", "", host("127.0.0.1"), 403},
		"numeric_name":           {"GET", w.address, "", "", host("0.0.0.0" + port), 403},
		"localhost_of_a_site":    {"GET", w.address, "", "", host("localhost.evil.test" + port), 403},
		"huge_answer":            {"POST", w.address, w.server.URL, "f0.7=" + strings.Repeat("x", maxForm) + "&" + good, nil, 413},
		"large_answer":           {"POST", w.address, w.server.URL, "f0.7=" + strings.Repeat("x", 70<<10) + "&" + good, nil, 413},
		"not_a_form":             {"POST", w.address, w.server.URL, good, header("Content-Type", "text/plain"), 400},
		"json":                   {"POST", w.address, w.server.URL, `{"action":"accept"}`, header("Content-Type", "application/json"), 400},
		"no_action":              {"POST", w.address, w.server.URL, "f0.2=1", nil, 400},
		"strange_action":         {"POST", w.address, w.server.URL, "f0.2=1&action=approve", nil, 400},
		"action_in_the_address":  {"POST", w.address + "?action=accept&f0.2=1", w.server.URL, "f0.2=1", nil, 400},
		"get_does_not_answer":    {"GET", w.address + "?action=accept&f0.2=1", "", "", nil, 200},
	} {
		status, body, headers := w.do(c.method, c.address, c.origin, c.body, c.change)
		if status != c.status {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
		if csp := headers.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") || headers.Get("X-Frame-Options") != "DENY" || headers.Get("Referrer-Policy") != "same-origin" || headers.Get("Cache-Control") != "no-store" || headers.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", name, headers)
		}
		if w.asked.Take(nil) != nil {
			t.Fatalf("%s has answered the question", name)
		}
	}
	w.fails = true
	if status, body := w.post(good); status != 503 || !strings.Contains(body, "does not count") {
		t.Errorf("not recorded: status %d: %s", status, body)
	}
	w.fails = false
	// By the machine's own name, by curl and by browsers of all kinds.
	for name, change := range map[string]func(*http.Request){
		"localhost": host("localhost" + port), "ipv6": host("[::1]" + port), "mapped": host("[::ffff:127.0.0.1]" + port),
		"from_a_link": header("Sec-Fetch-Site", "cross-site"), "typed": header("Sec-Fetch-Site", "none"),
	} {
		if status, body, _ := w.do("GET", w.address, "", "", change); status != 200 {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
	}
	if status, body, _ := w.do("POST", w.address, "", good, nil); status != 200 { // a browser of text has no origins
		t.Errorf("status %d: %s", status, body)
	}
}
