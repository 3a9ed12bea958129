package redact

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	ghp = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
)

// The tokens are put together here, so that no scanner takes this file for a leak.
func aws() string    { return "AKIA" + "IOSFODNN7EXAMPLE" }
func slack() string  { return "xoxb" + "-2345678901-abcdefghij" }
func openai() string { return "sk-" + "proj-abcdefghij0123456789" }
func google() string { return "AIza" + "SyA1234567890abcdefghijklmnopqrstuv" }
func gitlab() string { return "glpat-" + "abcdefghij0123456789" }
func stripe() string { return "sk_live_" + "abcdefghij0123456789" }

func TestText(t *testing.T) {
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"
	r := Redactor{Secrets: []string{"hunter2", "", "overlap-a-b", "a-b-more", "päß"}}
	for _, c := range []struct{ in, want string }{
		// What must go.
		{"key " + aws() + " end", "key [redacted] end"},
		{"(" + ghp + ")", "([redacted])"},
		{"github_pat_" + strings.Repeat("a1", 20), Mark},
		{gitlab() + "," + slack(), "[redacted],[redacted]"},
		{"x=" + openai(), "x=[redacted]"},
		{google(), Mark},
		{stripe(), Mark},
		{"got " + jwt + " back", "got [redacted] back"},
		{"a " + pem + " b", "a [redacted] b"},
		{"cut -----BEGIN PRIVATE KEY-----\nMIIEow", "cut [redacted]"},
		{"https://user:pw@host/p", "https://[redacted]@host/p"},
		{"https://ghtoken@host/p", "https://[redacted]@host/p"},
		{"https://u:p@ss@host/p", "https://[redacted]@host/p"},
		{"get https://host/p?token=abc&x=1: refused", "get https://host/p?[redacted] refused"},
		{`Get "https://host/p?q=secret words": refused`, `Get "https://host/p?[redacted] words": refused`},
		{"https://host/cb#access_token=abc", "https://host/cb#[redacted]"},
		{"https://a/?b=https://u:p@c/?d", "https://a/?[redacted]"},
		{"https://a/https://u:p@c/d", "https://a/https://[redacted]@c/d"},
		{"root:hunter9@tcp(db:3306)/x", "root:[redacted]@tcp(db:3306)/x"},
		{"Authorization: Bearer abc def", "Authorization: [redacted]"},
		{"Cookie: a=b; c=d\nnext", "Cookie: [redacted]\nnext"},
		{"set-cookie=x; y", "set-cookie=[redacted]"},
		{"bearer 0123456789abcdef!", "bearer [redacted]!"},
		{"Basic dXNlcjpwYXNz=", "Basic [redacted]"},
		{"password=letmein more", "password=[redacted] more"},
		{"Password: letmein", "Password: [redacted]"},
		{`{"password": "let \"me\" in", "a": 1}`, `{"password": "[redacted]", "a": 1}`},
		{`{\"api_key\": \"abc\"}`, `{\"api_key\": \"[redacted]`}, // the quote's end is not told from an escape
		{"API-Key = 'x y' z", "API-Key = '[redacted]' z"},
		{"MY_SECRET_TOKEN:=abc", "MY_SECRET_TOKEN:=[redacted]"},
		{"AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=[redacted]"},
		{"pin=1234 otp=99 userPin=7", "pin=[redacted] otp=[redacted] userPin=[redacted]"},
		{"the word hunter2, hunter2", "the word [redacted], [redacted]"},
		{"xhunter2x", "x[redacted]x"},
		{"overlap-a-b-more!", "[redacted]!"},
		{"päß", Mark},
		// What must stay.
		{"", ""},
		{"open /data/task-list/sk-etch.txt: no such file", "open /data/task-list/sk-etch.txt: no such file"},
		{"https://host:443/path/to", "https://host:443/path/to"},
		{"network.connect host:443", "network.connect host:443"},
		{"read tcp 10.0.0.1:443->10.0.0.2:80: reset", "read tcp 10.0.0.1:443->10.0.0.2:80: reset"},
		{"mail bob@example.com now", "mail bob@example.com now"},
		{"basic authentication and bearer tokens", "basic authentication and bearer tokens"},
		{"spinner=3 mapping=4 opinion: 5", "spinner=3 mapping=4 opinion: 5"},
		{"AKIA short eyJ ghp_x", "AKIA short eyJ ghp_x"},
		{"a ? b # c", "a ? b # c"},
		{"grüße", "grüße"},
	} {
		if got := r.Text(c.in, 1000); got != c.want {
			t.Errorf("Text(%q)\n got %q\nwant %q", c.in, got, c.want)
		}
		if clean := r.Clean(c.in); clean != (c.in == c.want) {
			t.Errorf("Clean(%q) = %v", c.in, clean)
		}
	}
}

func TestEveryFormIsFound(t *testing.T) {
	for _, f := range forms {
		tail := strings.Repeat("a", f.tail)
		if got := (Redactor{}).Text("<"+f.prefix+tail+">", 1000); got != "<"+Mark+">" {
			t.Errorf("%s: %q", f.prefix, got)
		}
		if short := "<" + f.prefix + tail[1:] + ">"; (Redactor{}).Text(short, 1000) != short {
			t.Errorf("%s: %q is taken for a token", f.prefix, short)
		}
	}
}

// TestTextCutsAfterItRedacts makes sure that no part of a secret is left
// because the text was cut in it.
func TestTextCutsAfterItRedacts(t *testing.T) {
	r := Redactor{Secrets: []string{"0123456789-exact-value"}}
	for _, secret := range []string{aws(), ghp, jwt, "0123456789-exact-value", "https://user:pass@host"} {
		for pad := range 40 {
			for _, far := range []int{0, seen - 20, scanned - 20} {
				got := r.Text(strings.Repeat(" ", far+pad)+secret, 30)
				if strings.Contains(got, secret[:8]) && secret[:8] != "https://" || strings.Contains(got, "pass") {
					t.Errorf("%q behind %d spaces leaves %q", secret, far+pad, got)
				}
			}
		}
	}
	if got := (Redactor{}).Text(strings.Repeat(jwt+" ", 2000), 50); len(got) > 50+len("…") || strings.Contains(got, "eyJ") {
		t.Errorf("many secrets: %q", got)
	}
	if got := (Redactor{}).Text("ääää", 3); got != "ä…" {
		t.Errorf("cut in a rune: %q", got)
	}
}

func TestAppendQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"":                         `""`,
		"plain":                    `"plain"`,
		`a"b\c`:                    `"a\"b\\c"`,
		"\n\t\x00\x7f":             `"\n\u0009\u0000\u007f"`,
		"\xff\xfe":                 "\"\ufffd\ufffd\"",
		"\u0085\u2028\u202e\ufeff": `"\u0085\u2028\u202e\ufeff"`,
		"grüße 😀":                  `"grüße 😀"`,
	} {
		if got := string(AppendQuoted(nil, in, 100)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	for _, s := range []string{strings.Repeat("x", 99), strings.Repeat("\x01", 99), strings.Repeat("😀", 99)} {
		for limit := 3; limit < 60; limit++ {
			got := AppendQuoted([]byte("before"), s, limit)[6:]
			if len(got)-2 > limit || !json.Valid(got) || !strings.HasSuffix(string(got), `…"`) {
				t.Errorf("limit %d of %.4q: %s", limit, s, got)
			}
		}
	}
}

func TestAppendShape(t *testing.T) {
	many := `{"k":0` + strings.Repeat(`,"k":0`, 70) + `}`
	for _, c := range []struct {
		in, want string
		whole    bool
	}{
		{`{}`, `[]`, true},
		{` { } `, `[]`, true},
		{`{"a":"xyz","b":1.5e3,"c":true,"d":null,"e":[],"f":{}}`,
			`["a:string:3","b:number","c:boolean","d:null","e:array:0","f:object:0"]`, true},
		{`{"o":{"p":{"q":"x"}}}`, `["o.p.q:string:1","o.p:object:1","o:object:1"]`, true},
		{`{"l":[{"n":1},{"n":"ab"},3,4,"never shown",{"nor":"this"}]}`,
			`["l[0].n:number","l[0]:object:1","l[1].n:string:2","l[1]:object:1","l[2]:number","l[3]:number","l:array:6"]`, true},
		{`{"quote\"d":1,"sp ace":2,"":3,"päth":4}`, `["?:number","?:number","?:number","?:number"]`, true},
		{`{"` + ghp + `":1,"xhunter2":2,"$ok_-.":3}`, `["?:number","?:number","$ok_-.:number"]`, true},
		{`{"` + strings.Repeat("a", 49) + `":1}`, `["?:number"]`, true},
		{`{"s":"a\\\"b\\"}`, `["s:string:8"]`, true},
		{``, `[]`, false},
		{`{"a":"open`, `[]`, false},
		{`{"a":1,`, `["a:number"]`, false},
		{`{"a"}`, `[]`, false},
		{`{"a":}`, `[]`, false},
		{`{"a":1} x`, `["a:number"]`, false},
		{`{"a":[1,}`, `["a[0]:number"]`, false},
		{many, `["k:number"` + strings.Repeat(`,"k:number"`, 63) + `]`, false},
		{strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), `[]`, false},
		{strings.Repeat(`[`, 100000), `[]`, false},
	} {
		got, whole := Redactor{Secrets: []string{"hunter2"}}.AppendShape(nil, []byte(c.in))
		if string(got) != c.want || whole != c.whole {
			t.Errorf("%.60s\n got %s %v\nwant %s %v", c.in, got, whole, c.want, c.whole)
		}
	}
}

func TestAppendValues(t *testing.T) {
	r := Redactor{Secrets: []string{"hunter2", "424242"}}
	for _, c := range []struct {
		in, want string
		whole    bool
	}{
		{`{"path":"/a/b","n":1.5,"t":true,"z":null}`, `{"path":"/a/b","n":1.5,"t":true,"z":null}`, true},
		{`{"password":"x","Api-Key":{"a":[1]},"authToken":7,"next":1}`, `{"password":"[redacted]","Api-Key":"[redacted]","authToken":"[redacted]","next":1}`, true},
		{`{"passw\u006frd":"x"}`, `{"password":"[redacted]"}`, true},
		{`{"q":"\u0067hp_16C7e42F292c6912E7710c838347Ae178B4a"}`, `{"q":"[redacted]"}`, true},
		{`{"q":"say hunter2","hunter2":1,"n":424242}`, `{"q":"say [redacted]","[redacted]":1,"n":"[redacted]"}`, true},
		{`{"url":"https://u:p@h/x?y=z"}`, `{"url":"https://[redacted]@h/x?[redacted]"}`, true},
		{`[[],{},[1,[2]]]`, `[[],{},[1,[2]]]`, true},
		{`{"a":01}`, `{"a":null}`, false},
		{`{"a":bogus}`, `{"a":null}`, false},
		{`{"a":"open`, `{"a":""}`, false},
		{`{"a":"bad \x"}`, `{"a":""}`, false},
		{`{"a":1,`, `{"a":1,"":null}`, false},
		{`{1:2}`, `{"":null}`, false},
		{`[1 2]`, `[1]`, false},
		{``, `null`, false},
		{`{} {}`, `{}`, false},
		{`{"password":`, `{"password":"[redacted]"}`, false},
	} {
		got, whole := r.AppendValues(nil, []byte(c.in), 1000)
		if string(got) != c.want || whole != c.whole {
			t.Errorf("%s\n got %s %v\nwant %s %v", c.in, got, whole, c.want, c.whole)
		}
	}
	big := `{"a":[` + strings.Repeat(`"0123456789",`, 1000) + `1]}`
	if got, whole := r.AppendValues(nil, []byte(big), 100); whole || len(got) > 700 || !json.Valid(got) {
		t.Errorf("big: %d bytes, whole %v, %s", len(got), whole, got)
	}
}

func TestSensitive(t *testing.T) {
	for key, want := range map[string]bool{
		"password": true, "userPassword": true, "PASSWD": true, "client_secret": true, "x-api-key": true, "apiKey": true, "Authorization": true,
		"cookie": true, "private_key": true, "credentials": true, "sessionId": true, "otp": true, "otpCode": true, "user_pin": true, "PIN": true,
		"jwt": true, "access.token": true, "dbPwd": true,
		"path": false, "": false, "spin": false, "pinned": false, "opinion": false, "laptop": false, "passage": false, "key": false, "_": false,
	} {
		if got := Sensitive(key); got != want {
			t.Errorf("Sensitive(%q) = %v", key, got)
		}
	}
}

// TestHostileTextIsLinear would not come to an end if a rule looked back or
// ahead without a bound.
func TestHostileTextIsLinear(t *testing.T) {
	for _, unit := range []string{"://", "eyJ", "a:b@", "-----BEGIN", "password=", "Bearer ", "://a@", "?", "sk-", "\\\"=", "token:\""} {
		s := strings.Repeat(unit, 4<<20/len(unit))
		if got := (Redactor{Secrets: []string{"zzz"}}).Text(s, 1000); len(got) > 1003 {
			t.Errorf("%q: %d bytes", unit, len(got))
		}
	}
}

func FuzzShapeAndValues(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,"x",{"b":null}],"password":"p"}`, `{"a":"\u00`, `[[[`, "{\"\\\\\":\"\\\"\"}", `{"a":1e5,"b":-0.1}`, "\x00", `{"a":}`, "{\"a\x00\":1}"} {
		f.Add([]byte(s), "secret-value")
	}
	f.Fuzz(func(t *testing.T, raw []byte, secret string) {
		r := Redactor{Secrets: []string{secret}}
		shape, _ := r.AppendShape(nil, raw)
		var entries []string
		if err := json.Unmarshal(shape, &entries); err != nil || len(entries) > maxKeys {
			t.Fatalf("shape %s: %v", shape, err)
		}
		for _, e := range entries {
			if !utf8.ValidString(e) || len(e) > maxPath+40 {
				t.Errorf("entry %q", e)
			}
		}
		values, _ := r.AppendValues(nil, raw, 200)
		if !json.Valid(values) {
			t.Fatalf("values %s of %q", values, raw)
		}
		if text := r.Text(string(raw), 100); secret != "" && utf8.ValidString(secret) && !strings.ContainsAny(secret, Mark+"…") && strings.Contains(text, secret) {
			t.Errorf("%q is still in %q", secret, text)
		}
	})
}

func BenchmarkText(b *testing.B) {
	s := fmt.Sprintf("open %s: permission denied (add \"read:/data\" to [capabilities].filesystem in skill.toml)", "/data/projects/example/input.txt")
	b.ReportAllocs()
	for b.Loop() {
		if got := (Redactor{}).Text(s, 1000); got != s {
			b.Fatal(got)
		}
	}
}
