package schema

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type inner struct {
	A int `json:"a" min:"1" default:"3"`
	B string
}

type Embedded struct {
	E string `json:"e"`
}

type upper string

func (u upper) MarshalText() ([]byte, error) { return []byte(strings.ToUpper(string(u))), nil }

type custom struct{ X chan int }

func (custom) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type loop struct {
	Next *loop `json:"next"`
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{struct{}{}, `{"type":"object","additionalProperties":false}`},
		{struct {
			S string  `json:"s" doc:"a \"text\"" minlen:"1" maxlen:"9" pattern:"^a" format:"uri"`
			I int8    `json:"i,omitempty" min:"-5" max:"7"`
			U uint    `json:"u,omitzero" max:"7"`
			V uint    `json:"v" min:"2"`
			F float64 `json:"f" min:"0.5"`
			B bool    `json:"b" default:"true"`
		}{}, `{"type":"object","properties":{` +
			`"s":{"type":"string","minLength":1,"maxLength":9,"format":"uri","pattern":"^a","description":"a \"text\""},` +
			`"i":{"type":"integer","minimum":-5,"maximum":7},"u":{"type":"integer","minimum":0,"maximum":7},"v":{"type":"integer","minimum":2},` +
			`"f":{"type":"number","minimum":0.5},"b":{"type":"boolean","default":true}},"required":["s","v","f"],"additionalProperties":false}`},
		{struct {
			L []string       `json:"l,omitempty" enum:"a,b" minlen:"1" max:"3"`
			N [2]int         `json:"n,omitempty"`
			X []byte         `json:"x,omitempty"`
			M map[string]int `json:"m,omitempty"`
			K map[int]any    `json:"k,omitempty"`
			E int            `json:"e,omitempty" enum:"1,2"`
		}{}, `{"type":"object","properties":{"l":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":3,"minItems":1},` +
			`"n":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2},"x":{"type":"string","contentEncoding":"base64"},` +
			`"m":{"type":"object","additionalProperties":{"type":"integer"}},"k":{"type":"object"},"e":{"type":"integer","enum":[1,2]}},"additionalProperties":false}`},
		{struct {
			P  *string         `json:"p"`
			Q  *inner          `json:"q,omitempty" doc:"d"`
			R  json.RawMessage `json:"r"`
			A  any             `json:"a"`
			N  json.Number     `json:"n"`
			T  time.Time       `json:"t"`
			U  upper           `json:"u"`
			IP netip.Addr      `json:"ip"`
			C  custom          `json:"c"`
		}{}, `{"type":"object","properties":{"p":{"type":["string","null"]},` +
			`"q":{"type":"object","properties":{"a":{"type":"integer","minimum":1,"default":3},"B":{"type":"string"}},"required":["B"],"additionalProperties":false,"description":"d"},` +
			`"r":{},"a":{},"n":{"type":"number"},"t":{"type":"string","format":"date-time"},"u":{"type":"string"},"ip":{"type":"string"},"c":{}},` +
			`"required":["p","r","a","n","t","u","ip","c"],"additionalProperties":false}`},
		{struct {
			Embedded
			Named  Embedded `json:"named"`
			Hidden string   `json:"-"`
			Dash   string   `json:"-,"` //lint:ignore SA5008 encoding/json calls this field "-"
			lower  string
		}{}, `{"type":"object","properties":{"e":{"type":"string"},` +
			`"named":{"type":"object","properties":{"e":{"type":"string"}},"required":["e"],"additionalProperties":false},"-":{"type":"string"}},` +
			`"required":["e","named","-"],"additionalProperties":false}`},
		{struct {
			Embedded `json:"inside"`
		}{}, `{"type":"object","properties":{"inside":{"type":"object","properties":{"e":{"type":"string"}},"required":["e"],"additionalProperties":false}},"required":["inside"],"additionalProperties":false}`},
	} {
		for range 3 { // always the same order
			got, err := Of(reflect.TypeOf(c.of), true)
			if err != nil || string(got) != c.want {
				t.Errorf("%T:\n got %s, %v\nwant %s", c.of, got, err, c.want)
			}
		}
	}
	open, err := Of(reflect.TypeFor[inner](), false)
	if err != nil || strings.Contains(string(open), "additionalProperties") {
		t.Errorf("open: %s, %v", open, err)
	}
}

func TestOfRefuses(t *testing.T) {
	for want, of := range map[string]any{
		"no JSON form":    struct{ C chan int }{},
		"map key":         struct{ M map[float64]int }{},
		"contains itself": loop{},
		"does not fit": struct {
			S string `min:"1"`
		}{},
		"is not a number": struct {
			S string `minlen:"x"`
		}{},
		"that fits": struct {
			S string `minlen:"1.5"`
		}{},
		"tag default": struct {
			I int `default:"x"`
		}{},
		"tag enum": struct {
			I int `enum:"1,x"`
		}{},
		"tag pattern": struct {
			I int `pattern:"x"`
		}{},
		"tag format": struct {
			B bool `format:"x"`
		}{},
		"not supported": struct {
			I int `json:"i,string"`
		}{},
		"field L: field c": struct {
			L struct {
				C func() `json:"c"`
			}
		}{},
		"tag max does not": struct {
			M map[string]int `max:"1"`
		}{},
		"tag maxlen does not": struct {
			I int `maxlen:"1"`
		}{},
	} {
		if got, err := Of(reflect.TypeOf(of), true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: want %q, got %s, %v", of, want, got, err)
		}
	}
}

func TestDefault(t *testing.T) {
	type all struct {
		S     string  `json:"s" default:"x y"`
		I     int     `json:"i" default:"-4"`
		P     *int    `json:"p" default:"5"`
		L     []int   `json:"l" default:"[1,2]"`
		In    inner   `json:"in"`
		Far   *inner  `json:"far"`
		Plain float64 `json:"plain"`
		Embedded
		*inner
		When time.Time
	}
	var got all
	Default(reflect.ValueOf(&got).Elem())
	five := 5
	if want := (all{S: "x y", I: -4, P: &five, L: []int{1, 2}, In: inner{A: 3}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if err := json.Unmarshal([]byte(`{"s":"","in":{"a":9}}`), &got); err != nil || got.S != "" || got.In.A != 9 || got.I != -4 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestListed(t *testing.T) {
	type item struct{ Tags []string }
	v := struct {
		L    []item
		Nil  []int
		M    map[string]int
		B    []byte
		P    *item
		Q    *item
		priv []int
	}{L: []item{{}, {Tags: []string{"x"}}}, P: &item{}}
	Listed(reflect.ValueOf(&v))
	got, err := json.Marshal(v)
	if want := `{"L":[{"Tags":[]},{"Tags":["x"]}],"Nil":[],"M":{},"B":null,"P":{"Tags":[]},"Q":null}`; err != nil || string(got) != want || v.priv != nil {
		t.Errorf("got %s, %v", got, err)
	}
}
