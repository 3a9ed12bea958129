package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/skillhost/skill/host"
	"github.com/skillhost/skill/host/config"
	"github.com/skillhost/skill/host/mcp/bearer"
	"github.com/skillhost/skill/host/mcp/conversation"
	"github.com/skillhost/skill/host/mcp/neighbour"
	"github.com/skillhost/skill/host/mcp/streamable"
)

// drainTime is how long calls may run on after a server was told to end.
const drainTime = 10 * time.Second

// httpFlags are those of serve that concern HTTP.
type httpFlags struct {
	addr     string // "" without --http, configured for one without a value
	port     uint16
	insecure bool
	poll     time.Duration
}

// configured stands for the address of the settings.
const configured = "the configured address"

func (f *httpFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "http", "", "serve over HTTP instead, at `ADDR` (default: the setting http.addr)")
	flags.Lookup("http").NoOptDefVal = configured
	flags.Uint16Var(&f.port, "port", 0, "with --http: the port to listen on")
	flags.BoolVar(&f.insecure, "insecure-no-auth", false, "with --http: serve other machines without asking who calls")
	flags.DurationVar(&f.poll, "poll-after", 0, "with --http: send clients of sessions away after this `TIME`, to fetch their answers later")
}

// settings applies the flags to the settings. A word behind --http is its value,
// which a flag that needs none cannot have read.
func (f *httpFlags) settings(cmd *cobra.Command, g *globals, args []string) (config.Config, error) {
	if len(args) == 1 {
		f.addr = args[0]
	}
	if f.addr != configured {
		g.paths.HTTP = f.addr
	}
	c, err := g.config()
	if err != nil {
		return c, err
	}
	if cmd.Flags().Changed("port") {
		name, _, err := net.SplitHostPort(c.HTTP.Addr)
		if err != nil {
			return c, err
		}
		c.HTTP.Addr = net.JoinHostPort(name, fmt.Sprint(f.port))
	}
	c.HTTP.Open = c.HTTP.Open || f.insecure
	return c, c.HTTP.Check()
}

// check refuses arguments that only make sense with --http.
func (f *httpFlags) check(cmd *cobra.Command, args []string) error {
	if f.addr == configured {
		return cobra.MaximumNArgs(1)(cmd, args)
	}
	for _, name := range []string{"port", "insecure-no-auth", "poll-after"} {
		if f.addr == "" && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s needs --http", name)
		}
	}
	return cobra.NoArgs(cmd, args)
}

// serveHTTP serves h over HTTP until the command is told to end.
func serveHTTP(cmd *cobra.Command, h *host.Host, c *config.HTTP, f *httpFlags, room *conversation.Room, log *slog.Logger) error {
	l, err := streamable.Listen(cmd.Context(), c.Addr, c.Asks() || c.Open)
	if err != nil {
		return err
	}
	address := endpoint(c, l.Addr())
	o := streamable.Options{Room: room, Scope: h.Scope(), Origins: c.Origins, Hosts: c.Hosts, Logger: log, PollAfter: f.poll,
		Limits: streamable.Limits{Body: c.Limits.Body, Sessions: c.Limits.Sessions, SessionIdle: c.Limits.SessionTTL}}
	if c.PublicURL != "" {
		if u, err := url.Parse(c.PublicURL); err == nil {
			o.Hosts = append(o.Hosts, u.Hostname())
		}
	}
	if c.Asks() || c.Open { // the user of this machine may be as fast as it is
		o.Rate, o.Burst = c.Limits.Rate, c.Limits.Burst
	}
	switch {
	case c.Asks():
		if err := authenticate(&o, c, address, func() []string { return h.Policy().Rights() }); err != nil {
			l.Close()
			return err
		}
	case c.Open:
		o.Scope.Caller = bearer.Anonymous
	default: // whoever comes is the user of this machine, so it has to be
		l = neighbour.Only(l, os.Getuid(), stranger, func(who string) { log.Warn("turned away a connection", "of", who) })
	}
	announce(cmd, address, c.Asks())
	return streamable.New(o).Serve(cmd.Context(), l, drainTime)
}

// stranger is what another user of this machine is told.
var stranger = answer(http.StatusForbidden, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"denied: this server is for another user of this machine","data":{"details":"its user can let others in: skill token"}}}`)

// answer is one whole HTTP response.
func answer(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body)
}

// endpoint is what clients call this server.
func endpoint(c *config.HTTP, at net.Addr) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	if a, ok := at.(*net.TCPAddr); ok && a.IP.IsUnspecified() { // all of this machine's
		return fmt.Sprintf("http://localhost:%d/mcp", a.Port)
	}
	return "http://" + at.String() + "/mcp"
}

// authenticate lets in whom c says. offered are the rights that mean something
// here.
func authenticate(o *streamable.Options, c *config.HTTP, address string, offered func() []string) error {
	b := bearer.Options{Resource: address, Name: "skill", Issuers: c.Issuers, Audiences: c.Audiences, Required: c.Required, Offered: offered}
	for _, t := range c.Tokens {
		b.Tokens = append(b.Tokens, bearer.Token{Name: t.Name, Hash: t.Hash, Rights: t.Rights})
	}
	door, err := bearer.New(b)
	if err != nil {
		return err
	}
	o.Metadata = door.Metadata()
	log := o.Logger
	o.Authenticate = func(r *http.Request) (string, string, error) {
		id, err := door.Authenticate(r)
		var no *bearer.Refusal
		if errors.As(err, &no) {
			if no.Cause != nil {
				log.Warn("a token cannot be checked", "err", no.Cause)
			}
			err = &streamable.Refusal{Status: no.Status, Challenge: no.Challenge, Retry: no.Retry, Err: no.Err}
		}
		return id.Caller, id.Rights, err
	}
	return nil
}

// announce tells the operator where the server is, and what to put into a
// client's configuration.
func announce(cmd *cobra.Command, address string, token bool) {
	type server struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}
	s := server{Type: "http", URL: address}
	if token {
		s.Headers = map[string]string{"Authorization": "Bearer TOKEN"}
	}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]server{"skill": s}}, "", "  ")
	if err != nil { // strings only: cannot happen
		return
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "skill: serving MCP at %s\nConfiguration of a client:\n%s\n", address, text)
}
