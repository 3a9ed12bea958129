package guest

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest/internal/schema"
)

// A Reply is a result whose text is not simply its structured content. Text
// comes first, then Content. A Failed reply has no structured content unless it
// is Whole: the tool ran, and says in Text what went wrong.
type Reply[T any] struct {
	Text       string
	Content    []sdk.Content
	Structured T
	Failed     bool
	Whole      bool // Structured counts although the reply is Failed
}

// replier is what every Reply is, whatever its T.
type replier interface {
	structuredType() reflect.Type
	result() (sdk.Result, error)
}

func (Reply[T]) structuredType() reflect.Type { return reflect.TypeFor[T]() }

func (r Reply[T]) result() (sdk.Result, error) {
	res := sdk.Result{Failed: r.Failed}
	if r.Text != "" {
		res.Content = append(res.Content, sdk.Content{Type: sdk.TypeText, Text: r.Text})
	}
	res.Content = append(res.Content, r.Content...)
	if r.Failed && !r.Whole {
		return res, nil
	}
	var err error
	res.Structured, err = structured(&r.Structured)
	return res, err
}

// encode makes a Result of what a tool returned; out points to it.
func encode(out any) (sdk.Result, error) {
	switch v := out.(type) {
	case *sdk.Result:
		return *v, nil
	case **sdk.Result:
		if *v == nil {
			return sdk.Result{}, errNothing
		}
		return **v, nil
	case *string:
		return sdk.Text(*v), nil
	}
	value := reflect.ValueOf(out).Elem()
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return sdk.Result{}, errNothing
	}
	if r, ok := value.Interface().(replier); ok {
		return r.result()
	}
	if value.Kind() == reflect.String {
		return sdk.Text(value.String()), nil
	}
	b, err := structured(out)
	if err != nil {
		return sdk.Result{}, err
	}
	text := string(b)
	if s, ok := value.Interface().(fmt.Stringer); ok {
		text = s.String()
	}
	r := sdk.Text(text)
	r.Structured = b
	return r, nil
}

var errNothing = &sdk.Error{Kind: sdk.Guest, What: "the tool returned nothing"}

func structured(v any) (json.RawMessage, error) {
	schema.Listed(reflect.ValueOf(v))
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return b, nil
}

// decode reads args, a JSON object or nothing, into what in points to.
func decode(args json.RawMessage, in any) error {
	v := reflect.ValueOf(in).Elem()
	schema.Default(v)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := json.Unmarshal(args, in); err != nil {
		return &sdk.Error{Kind: sdk.Invalid, What: "the arguments do not fit", Err: err}
	}
	return nil
}
