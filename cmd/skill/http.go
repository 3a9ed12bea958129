package main

import (
	"cmp"
	"crypto/tls"
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
	"github.com/skillhost/skill/host/mcp/answer"
	"github.com/skillhost/skill/host/mcp/bearer"
	"github.com/skillhost/skill/host/mcp/certificate"
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
	tls      config.HTTPTLS
}

// configured stands for the address of the settings.
const configured = "the configured address"

func (f *httpFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "http", "", "serve over HTTP instead, at `ADDR` (default: the setting http.addr)")
	flags.Lookup("http").NoOptDefVal = configured
	flags.Uint16Var(&f.port, "port", 0, "with --http: the port to listen on")
	flags.BoolVar(&f.insecure, "insecure-no-auth", false, "with --http: serve other machines without asking who calls")
	flags.StringVar(&f.tls.Cert, "tls-cert", "", "with --http: speak TLS, with the certificate in this `FILE` (default: the setting http.tls_cert)")
	flags.StringVar(&f.tls.Key, "tls-key", "", "with --http: the key of that certificate, in a `FILE` that nobody else may read (default: the setting http.tls_key)")
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
	c.HTTP.TLS = config.HTTPTLS{Cert: cmp.Or(f.tls.Cert, c.HTTP.TLS.Cert), Key: cmp.Or(f.tls.Key, c.HTTP.TLS.Key)}
	return c, c.HTTP.Check()
}

// check refuses arguments that only make sense with --http.
func (f *httpFlags) check(cmd *cobra.Command, args []string) error {
	if f.addr == configured {
		return cobra.MaximumNArgs(1)(cmd, args)
	}
	for _, name := range []string{"port", "insecure-no-auth", "poll-after", "tls-cert", "tls-key"} {
		if f.addr == "" && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s needs --http", name)
		}
	}
	return cobra.NoArgs(cmd, args)
}

// serveHTTP serves h over HTTP until the command is told to end.
func serveHTTP(cmd *cobra.Command, h *host.Host, c *config.HTTP, f *httpFlags, room *conversation.Room, log *slog.Logger) error {
	doors, err := doorsOf(c, log)
	if err != nil {
		return err
	}
	l, err := streamable.Listen(cmd.Context(), c.Addr, c.Asks() || c.Open)
	if err != nil {
		return err
	}
	address := endpoint(c, l.Addr())
	o := streamable.Options{Room: room, Scope: h.Scope(), Origins: c.Origins, Hosts: c.Hosts, Logger: log, PollAfter: f.poll, Ended: h.EndSession,
		Limits: streamable.Limits{Body: c.Limits.Body, Sessions: c.Limits.Sessions, SessionIdle: c.Limits.SessionTTL, Share: c.Limits.Share}}
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
	default: // whoever comes is the user of this machine
		if h.Config.Questions.Page {
			o.Pages = answer.New(h.Questions())
			base := scheme(c) + l.Addr().String() + answer.Path
			h.Questions().Offer(func() (string, error) { return base, nil })
		}
	}
	announce(cmd, address, c.Asks())
	if c.Asks() && c.TLS.Cert == "" && !c.Loopback() {
		log.Warn("other machines reach this address without TLS: tokens can be read on the way, unless a proxy that speaks TLS stands in front", "addr", c.Addr, "hint", "--tls-cert FILE --tls-key FILE")
	}
	return streamable.New(o).Serve(cmd.Context(), l, drainTime, doors...)
}

// doorsOf returns what connections pass before anything is said on them.
func doorsOf(c *config.HTTP, log *slog.Logger) (doors []func(net.Listener) net.Listener, err error) {
	if !c.Asks() && !c.Open { // whoever comes is the user of this machine, so it has to be
		doors = append(doors, func(l net.Listener) net.Listener {
			return neighbour.Only(l, os.Getuid(), stranger, func(who string, n int) { log.Warn("turned away connections", "of", who, "count", n) })
		})
	}
	if c.TLS.Cert == "" {
		return doors, nil
	}
	pair, err := certificate.Open(certificate.Source{Cert: c.TLS.Cert, Key: c.TLS.Key, ReadKey: config.ReadKey,
		Failed: func(err error) {
			log.Warn("the certificate has changed, but cannot be used; the old one is", "err", err)
		}})
	if err != nil {
		return nil, err
	}
	return append(doors, func(l net.Listener) net.Listener { return tls.NewListener(l, pair.Config()) }), nil
}

// stranger is what another user of this machine is told.
var stranger = response(http.StatusForbidden, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"denied: this server is for another user of this machine","data":{"details":"its user can let others in: skill token"}}}`)

// response is one whole HTTP response.
func response(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body)
}

// endpoint is what clients call this server.
func endpoint(c *config.HTTP, at net.Addr) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	if a, ok := at.(*net.TCPAddr); ok && a.IP.IsUnspecified() { // all of this machine's
		return fmt.Sprintf("%slocalhost:%d/mcp", scheme(c), a.Port)
	}
	return scheme(c) + at.String() + "/mcp"
}

// scheme is how addresses of this server begin.
func scheme(c *config.HTTP) string {
	if c.TLS.Cert != "" {
		return "https://"
	}
	return "http://"
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
