package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/skillhost/skill/sdk"
)

const greet = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
	"name":{"type":"string","minLength":1,"maxLength":40,"description":"whom"},
	"count":{"type":"integer","minimum":1,"maximum":100},
	"style":{"enum":["plain","loud"]},
	"tags":{"type":"array","items":{"type":"string"},"maxItems":3},
	"ratio":{"type":"number"},
	"where":{"type":["object","null"],"properties":{"x":{"type":"number"}},"additionalProperties":false}},
	"required":["name"],"additionalProperties":false}`

// args builds the schema of an object with one property x.
func args(x string) string { return `{"type":"object","properties":{"x":` + x + `}}` }

func TestCheck(t *testing.T) {
	for _, tc := range []struct{ name, schema, value, want string }{
		{"ok", greet, `{"name":"Ann","count":3,"style":"loud","tags":["a","b"],"ratio":1.5,"where":{"x":1}}`, ""},
		{"ok_escapes", greet, `{"n\u0061me":"A\nn","where":null}`, ""},
		{"ok_space", greet, " {\n\"name\" :\t\"Ann\" } ", ""},
		{"ok_float_integer", greet, `{"name":"a","count":2.0}`, ""},
		{"missing", greet, `{}`, `arguments: missing "name", at /required`},
		{"nil_is_empty", greet, "", `arguments: missing "name", at /required`},
		{"type", greet, `{"name":1}`, `arguments: /name: want string, found number, at /properties/name/type`},
		{"unknown", greet, `{"name":"a","nmae":1}`, `arguments: unknown "nmae", known: "count", "name", "ratio", "style", "tags", "where", at /additionalProperties`},
		{"enum", greet, `{"name":"a","style":"soft"}`, `arguments: /style: want one of "plain", "loud", found "soft", at /properties/style/enum`},
		{"minimum", greet, `{"name":"a","count":0}`, `arguments: /count: want at least 1, found 0, at /properties/count/minimum`},
		{"maximum", greet, `{"name":"a","count":1e30}`, `arguments: /count: want at most 100, found 1000000000000000000000000000000, at /properties/count/maximum`},
		{"exact", args(`{"type":"integer","maximum":9007199254740992}`), `{"x":9007199254740993}`, `arguments: /x: want at most 9007199254740992, found 9007199254740993, at /properties/x/maximum`},
		{"min_length", greet, `{"name":""}`, `arguments: /name: want at least 1 characters, found 0, at /properties/name/minLength`},
		{"max_length_runes", greet, `{"name":"` + strings.Repeat("é", 40) + `"}`, ""},
		{"max_items", greet, `{"name":"a","tags":["a","b","c","d"]}`, `arguments: /tags: want at most 3 items, found 4, at /properties/tags/maxItems`},
		{"in_item", greet, `{"name":"a","tags":["a",null]}`, `arguments: /tags/1: want string, found null, at /properties/tags/items/type`},
		{"several", greet, `{"name":1,"count":"x","style":2}`, `arguments: /count: want integer, found string, at /properties/count/type; /name: want string, found number, at /properties/name/type; /style: want one of "plain", "loud", found 2, at /properties/style/enum`},
		{"more_than_five", args(`{"items":{"type":"string"}}`), `{"x":[1,2,3,4,5,6,7]}`, `arguments: /x/0: want string, found number, at /properties/x/items/type; /x/1: want string, found number, at /properties/x/items/type; /x/2: want string, found number, at /properties/x/items/type; /x/3: want string, found number, at /properties/x/items/type; /x/4: want string, found number, at /properties/x/items/type; and 2 more`},
		{"not_an_object", greet, `[]`, `arguments: want object, found array, at /type`},
		{"format", args(`{"format":"date"}`), `{"x":"tomorrow"}`, `arguments: /x: want the format "date", found "tomorrow", at /properties/x/format`},
		{"format_uri", args(`{"format":"uri"}`), `{"x":"nowhere"}`, `arguments: /x: want the format "uri", found "nowhere", at /properties/x/format`},
		{"pattern", args(`{"pattern":"^a+$"}`), `{"x":"b"}`, `arguments: /x: want a match of "^a+$", found "b", at /properties/x/pattern`},
		{"clipped", args(`{"const":"a"}`), `{"x":"` + strings.Repeat("b", 100) + `"}`, `arguments: /x: want "a", found "` + strings.Repeat("b", 60) + `…", at /properties/x/const`},
		{"control_in_echo", args(`{"const":"a"}`), `{"x":"\u001b[31m"}`, `arguments: /x: want "a", found "\x1b[31m", at /properties/x/const`},
		{"any_of", args(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), `{"x":1}`, `arguments: /x: fits none of the alternatives, at /properties/x/anyOf; /x: want string, found number, at /properties/x/anyOf/0/type; /x: want null, found number, at /properties/x/anyOf/1/type`},
		{"one_of_two", args(`{"oneOf":[{"type":"number"},{"type":"integer"}]}`), `{"x":1}`, `arguments: /x: fits the alternatives 0 and 1, and must fit only one, at /properties/x/oneOf`},
		{"not", args(`{"not":{"type":"string"}}`), `{"x":"a"}`, `arguments: /x: is of a kind that is excluded, at /properties/x/not`},
		{"false", args(`false`), `{"x":"a"}`, `arguments: /x: nothing is allowed here, at /properties/x`},
		{"unique", args(`{"uniqueItems":true}`), `{"x":[1,2,1.0]}`, `arguments: /x: want all items different: 0 and 2 are equal, at /properties/x/uniqueItems`},
		{"ref", `{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"x":1}`, `arguments: /x: want string, found number, at /$defs/a/type`},
		{"ref_by_id", `{"$id":"https://a.example/s","type":"object","properties":{"x":{"$ref":"https://a.example/s#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, `{"x":1}`, `arguments: /x: want string, found number, at /$defs/a/type`},
		{"recursive", `{"type":"object","properties":{"x":{"$ref":"#"}},"additionalProperties":false}`, `{"x":{"x":{"y":1}}}`, `arguments: /x/x: unknown "y", known: "x", at /additionalProperties`},
		{"draft7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"x":{"type":"string"}},"definitions":{}}`, `{"x":1}`, `arguments: /x: want string, found number, at /properties/x/type`},
		{"draft4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"x":{"maximum":1,"exclusiveMaximum":true}}}`, `{"x":1}`, `arguments: /x: want less than 1, found 1, at /properties/x/exclusiveMaximum`},
		{"dependent", `{"type":"object","dependentRequired":{"x":["y"]}}`, `{"x":1}`, `arguments: missing "y", needed with "x", at /dependentRequired`},
		{"names", `{"type":"object","propertyNames":{"maxLength":2}}`, `{"xyz":1}`, `arguments: bad property name "xyz", at /propertyNames; want at most 2 characters, found 3, at /propertyNames/maxLength`},
		{"pointer_escapes", `{"type":"object","properties":{"a/b~c":{"type":"null"}}}`, `{"a/b~c":1}`, `arguments: /a~1b~0c: want null, found number, at /properties/a~1b~0c/type`},

		{"args_duplicate_key", greet, `{"name":"a","name":"b"}`, `arguments: duplicate key "name" at byte 12`},
		{"args_duplicate_key_escaped", greet, `{"name":"a","n\u0061me":"b"}`, `arguments: duplicate key "name" at byte 12`},
		{"args_duplicate_key_inside", args(`{}`), `{"x":[{"y":{"a":1,"a":1}}]}`, `arguments: duplicate key "a" at byte 18`},
		{"args_trailing", greet, `{"name":"a"}{}`, `arguments: not JSON at byte 12: want the end, found '{'`},
		{"args_nul_after", greet, "{\"name\":\"a\"}\x00", `arguments: not JSON at byte 12: want the end, found '\x00'`},
		{"args_not_utf8", greet, "{\"name\":\"a\xff\"}", `arguments: not UTF-8 at byte 10`},
		{"args_bom", greet, "\uFEFF{\"name\":\"a\"}", `arguments: not JSON at byte 0: want a value, found '\ufeff'`},
		{"args_lone_surrogate", greet, `{"name":"\ud800"}`, `arguments: not JSON at byte 15: half of a surrogate pair`},
		{"args_swapped_surrogates", greet, `{"name":"\udc00\ud800"}`, `arguments: not JSON at byte 21: half of a surrogate pair`},
		{"args_surrogate_pair", greet, `{"name":"\ud83d\ude00"}`, ""},
		{"args_control", greet, "{\"name\":\"a\nb\"}", `arguments: not JSON at byte 10: a control character in a string`},
		{"args_comment", greet, `{"name":"a"/**/}`, `arguments: not JSON at byte 11: want ',' or '}', found '/'`},
		{"args_trailing_comma", greet, `{"name":"a",}`, `arguments: not JSON at byte 12: want a key, found '}'`},
		{"args_nan", args(`{}`), `{"x":NaN}`, `arguments: not JSON at byte 5: want a value, found 'N'`},
		{"args_leading_zero", args(`{}`), `{"x":01}`, `arguments: not JSON at byte 6: want ',' or '}', found '1'`},
		{"args_hex", args(`{}`), `{"x":0x1}`, `arguments: not JSON at byte 6: want ',' or '}', found 'x'`},
		{"args_deep", args(`{}`), `{"x":` + strings.Repeat("[", 100000), `arguments: nested too deep at byte 132`},
		{"args_huge_exponent", args(`{"minimum":0}`), `{"x":1e1000001}`, `arguments: a number of more than 256 digits, or with an exponent beyond 512, at byte 5`},
		{"args_long_number", args(`{"minimum":0}`), `{"x":` + strings.Repeat("9", 300) + `}`, `arguments: a number of more than 256 digits, or with an exponent beyond 512, at byte 5`},
		{"args_empty", greet, ` `, `arguments: not JSON at byte 1: want a value, found the end`},
		{"args_null", greet, `null`, `arguments: want object, found null, at /type`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			var value json.RawMessage
			if tc.value != "" {
				value = json.RawMessage(tc.value)
			}
			err = s.Check(value)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || err.Error() != tc.want):
				t.Errorf("\ngot  %v\nwant %s", err, tc.want)
			case err != nil && sdk.KindOf(err) != sdk.Invalid:
				t.Errorf("kind %v", sdk.KindOf(err))
			}
		})
	}
}

func TestNilSchema(t *testing.T) {
	s, err := Compile(nil)
	if err != nil {
		t.Fatal(err)
	}
	for value, ok := range map[string]bool{`{}`: true, `{"a":[1]}`: true, `[]`: false, `1`: false, `{"a":1,"a":1}`: false, `{}x`: false} {
		if err := s.Check(json.RawMessage(value)); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
	if err := s.Check(nil); err != nil {
		t.Error(err)
	}
}

func TestCompileAny(t *testing.T) {
	s, err := CompileAny(json.RawMessage(`{"type":"array","items":{"type":"integer"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(json.RawMessage(`[1,2]`)); err != nil {
		t.Error(err)
	}
	if err := s.Check(json.RawMessage(`[1,"2"]`)); err == nil || err.Error() != "value: /1: want integer, found string, at /items/type" {
		t.Error(err)
	}
	if s, err = CompileAny(json.RawMessage(`true`)); err != nil || s.Check(json.RawMessage(`"x"`)) != nil {
		t.Error(err)
	}
}

// doubling is a schema whose check takes 2^n steps in the library.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"minProperties":1}}}`, n)
	return b.String()
}

func TestHostileSchemas(t *testing.T) {
	for _, tc := range []struct{ name, schema, want string }{
		{"schema_ref_http", args(`{"$ref":"http://169.254.169.254/latest"}`), `reference to "http://169.254.169.254/latest": a schema is never fetched`},
		{"schema_ref_https", args(`{"$ref":"https://example.com/s.json#/a"}`), `a schema is never fetched`},
		{"schema_ref_file", args(`{"$ref":"file:///etc/passwd"}`), `a schema is never fetched`},
		{"schema_ref_relative", args(`{"$ref":"other.json"}`), `reference to "other.json": a schema is never fetched`},
		{"schema_ref_path", args(`{"$ref":"/etc/passwd"}`), `a schema is never fetched`},
		{"schema_ref_through_id", `{"$id":"file:///etc/","type":"object","properties":{"x":{"$ref":"passwd"}}}`, `a schema is never fetched`},
		{"schema_id_inside", args(`{"$id":"file:///etc/x","$ref":"passwd"}`), `a schema is never fetched`},
		{"schema_metaschema_http", `{"$schema":"http://example.com/meta","type":"object"}`, `a schema is never fetched`},
		{"schema_metaschema_file", `{"$schema":"file:///etc/passwd","type":"object"}`, `a schema is never fetched`},
		{"schema_ref_missing", args(`{"$ref":"#/$defs/none"}`), `bad schema: `},
		{"schema_ref_loop", `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `a reference that leads back to itself`},
		{"schema_ref_self", `{"type":"object","$ref":"#"}`, `a reference that leads back to itself`},
		{"schema_ref_loop_all_of", `{"type":"object","properties":{"x":{"allOf":[{"not":{"$ref":"#/properties/x"}}]}}}`, `a reference that leads back to itself`},
		{"schema_ref_loop_late", `{"type":"object","$ref":"#/$defs/y","$defs":{"y":{"allOf":[{"$ref":"#/$defs/z"},{"$ref":"#/$defs/x"}]},"z":{"properties":{"a":{"$ref":"#/$defs/x"}}},"x":{"$ref":"#/$defs/y"}}}`, `a reference that leads back to itself`},
		{"schema_dynamic_ref", `{"type":"object","properties":{"x":{"$dynamicRef":"#n"}},"$defs":{"n":{"$dynamicAnchor":"n"}}}`, `"$dynamicRef" and "$recursiveRef" are not supported`},
		{"schema_deep", args(strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100)), `nested too deep at byte`},
		{"schema_deeper", strings.Repeat(`[`, 200000), `nested too deep at byte`},
		{"schema_large", args(`{"description":"` + strings.Repeat("x", MaxSchema) + `"}`), `bytes are too many: at most 262144`},
		{"schema_many", args(`{"allOf":[` + strings.Repeat(`{},`, 5000) + `{}]}`), `5004 objects are too many: at most 4096`},
		{"schema_many_refs", args(`{"allOf":[` + strings.Repeat(`{"$ref":"#/x"},`, 600) + `{}]}`), `600 references are too many: at most 512`},
		{"schema_duplicate_key", `{"type":"object","properties":{},"properties":{"x":{}}}`, `duplicate key "properties" at byte 33`},
		{"schema_huge_number", args(`{"minimum":1e999999999}`), `an exponent beyond 512`},
		{"schema_backreference", args(`{"pattern":"(a)\\1"}`), `at /properties/x/pattern: want the format "regex", found "(a)\\1"`},
		{"schema_pattern_bomb", args(`{"pattern":"(((((a{20}){10}){5}b{1000}){1})c{1000}d{1000}e{1000}f{1000}){1}"}`), `at /properties/x/pattern`},
		{"schema_not_object", `[]`, `want a JSON object`},
		{"schema_true", `true`, `want a JSON object`},
		{"schema_type_missing", `{}`, `at /type: want "type": "object"`},
		{"schema_type_list", `{"type":["object"]}`, `at /type: want "type": "object"`},
		{"schema_type_wrong", args(`{"type":"strin"}`), `bad schema: at /properties/x/type: `},
		{"schema_keyword_wrong", args(`{"minLength":"1"}`), `bad schema: at /properties/x/minLength: want integer, found string`},
		{"schema_not_json", `{"type":`, `not JSON at byte 8: want a value, found the end`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tc.schema))
			if err == nil {
				t.Fatalf("accepted: %+v", s)
			}
			if sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\ngot  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// The library would not return from any of these.
func TestHostileWork(t *testing.T) {
	twice := `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	nested := strings.Repeat(`{"a":`, 100) + `{"b":1}` + strings.Repeat(`}`, 100)
	for _, tc := range []struct{ name, schema, value string }{
		{"doubling", doubling(60), `{}`},
		{"doubling_by_depth", twice, nested},
		{"long_match", args(`{"pattern":"(a?){500}a{500}b"}`), `{"x":"` + strings.Repeat("a", 1<<20) + `"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(json.RawMessage(tc.value)); sdk.KindOf(err) != sdk.Limit {
				t.Errorf("got %v", err)
			}
		})
	}
	s, err := Compile(json.RawMessage(twice))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(json.RawMessage(`{"a":{"a":{}}}`)); err != nil {
		t.Errorf("a shallow value: %v", err)
	}
	if err := s.Check(json.RawMessage(`{"x":"` + strings.Repeat("a", MaxInstance) + `"}`)); sdk.KindOf(err) != sdk.Limit {
		t.Errorf("a large value: %v", err)
	}
}

// The shortcut must accept nothing that the library does not.
func TestShapeAgrees(t *testing.T) {
	s, err := Compile(json.RawMessage(greet))
	if err != nil {
		t.Fatal(err)
	}
	if s.fast == nil {
		t.Fatal("no shape")
	}
	values := []string{`"Ann"`, `""`, `"\n"`, `"\u00e9\ud83d\ude00\\"`, `"\ud83d"`, `"\x"`, `"é"`, `"pl\u0061in"`, `"` + strings.Repeat("é", 40) + `"`, `"` + strings.Repeat("\\n", 41) + `"`, `0`, `1`, `-1`, `100`, `101`, `1.0`, `1.5`, `1e1`, `9223372036854775808`, `true`, `false`, `null`, `[]`, `["a"]`, `[1]`, `["a","b","c","d"]`,
		`{}`, `{"x":1}`, `{"x":"1"}`, `{"y":1}`, `"plain"`, `"loud"`, `"loude"`, `-`, `01`, `[`, `tru`, `"`}
	accepted := 0
	for _, k1 := range []string{"name", "count", "style", "tags", "ratio", "where", "other"} {
		for _, v1 := range values {
			for _, k2 := range []string{"name", "where", "ratio"} {
				for _, v2 := range values {
					text := []byte(`{"` + k1 + `":` + v1 + `,"` + k2 + `":` + v2 + `}`)
					if !s.fast.accepts(text) {
						continue
					}
					accepted++
					if err := s.check(text); err != nil {
						t.Errorf("%s: the shape accepts, the library says %v", text, err)
					}
				}
			}
		}
	}
	if accepted < 100 {
		t.Errorf("only %d values accepted", accepted)
	}
}

func TestCheckAllocations(t *testing.T) {
	s, err := Compile(json.RawMessage(greet))
	if err != nil {
		t.Fatal(err)
	}
	value := json.RawMessage(`{"name":"Ann","count":3}`)
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Check(value); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{greet, doubling(3), args(`{"$ref":"#"}`), args(`{"pattern":"a*","format":"uri"}`), `{"type":"object","unevaluatedProperties":false,"allOf":[{"properties":{"a":{}}}]}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"x","dependencies":{"a":["b"],"c":{"type":"object"}}}`,
		`{"type":"object","if":{"required":["a"]},"then":{"propertyNames":{"pattern":"^a"}},"else":false}`} {
		f.Add([]byte(s), []byte(`{"name":"Ann","a":{"x":[1,2.5,null]}}`))
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if len(schema) > 4096 || len(value) > 4096 {
			return
		}
		s, err := CompileAny(schema)
		if err != nil {
			if k := sdk.KindOf(err); k != sdk.Invalid {
				t.Fatalf("kind %v: %v", k, err)
			}
			return
		}
		err = s.check(value)
		if k := sdk.KindOf(err); err != nil && k != sdk.Invalid && k != sdk.Limit {
			t.Fatalf("kind %v: %v", k, err)
		}
		if err != nil && s.fast != nil && s.fast.accepts(value) {
			t.Fatalf("the shape accepts, the library says %v", err)
		}
	})
}

// FuzzParse: what the strict parser accepts, encoding/json accepts too and
// reads alike; and it says it in the same words again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e3,"\u00e9\ud83d\ude00",null,true,false]}`, `"\ud800"`, `[1,]`, `{"a":1,"a":2}`, "\"\xff\"", ` 0 `} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parse(b, MaxInstanceDepth)
		if err != nil {
			return
		}
		d := json.NewDecoder(strings.NewReader(string(b)))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		got, err1 := json.Marshal(v)
		std, err2 := json.Marshal(want)
		if err1 != nil || err2 != nil || string(got) != string(std) {
			t.Fatalf("%s (%v) is not %s (%v)", got, err1, std, err2)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for name, value := range map[string]string{"fast": `{"name":"Ann","count":3}`, "escapes": `{"name":"An\n","count":3}`, "slow": `{"name":"Ann","count":3.0}`} {
		b.Run(name, func(b *testing.B) {
			s, err := Compile(json.RawMessage(greet))
			if err != nil {
				b.Fatal(err)
			}
			raw := json.RawMessage(value)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Check(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
