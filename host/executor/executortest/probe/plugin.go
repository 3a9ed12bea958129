//go:build plugin && !wasip1

package main

import (
	"encoding/json"
	"errors"

	"github.com/skillhost/skill/sdk"
	"github.com/skillhost/skill/sdk/guest"
	"github.com/skillhost/skill/sdk/plugin"
)

var _ = guest.Tool("probe", "", func(c *guest.Call, _ json.RawMessage) (sdk.Result, error) {
	var t task
	if err := json.Unmarshal(c.Args(), &t); err != nil {
		return sdk.Result{}, err
	}
	call, failure = c, nil
	text := perform(t)
	return sdk.Text(text), failure
}, guest.ExtraArguments())

// main is a native plugin, by the SDK.
func main() { plugin.Serve() }

var (
	call    *guest.Call // the one that goes on
	failure error       // that it ends with
)

// imports asks the host for something.
func imports(verb string, a []string) (string, bool) {
	switch verb {
	case "op":
		f, err := call.Start(a[0], nil).Wait()
		if e := (*sdk.Error)(nil); errors.As(err, &e) {
			b, _ := json.Marshal(map[string]*sdk.Error{"error": e})
			return string(b), true
		}
		return said(string(f.Header), err)
	case "error":
		failure = &sdk.Error{Kind: sdk.Kind(a[0]), What: a[1], Denial: &sdk.Denial{Layer: "operator", Allow: `filesystem = ["write:/"]`}}
	case "log":
		call.Log(a[0], a[1])
	case "patience":
		<-call.Context().Done()
		return "cancelled", true
	case "settings":
		var set json.RawMessage
		if err := call.Settings(&set); err != nil {
			return err.Error(), true
		}
		return string(set), true
	case "header":
		b, _ := json.Marshal(call.Environ())
		return call.Tool() + " " + string(b), true
	default:
		return "", false
	}
	return "ok", true
}
