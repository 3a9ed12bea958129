package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skillhost/skill/host/capability"
	"github.com/skillhost/skill/sdk"
)

// connect serves a CONNECT.
func (p *pass) connect(w http.ResponseWriter, r *http.Request, f *flow) {
	n, err := tunnelTarget(r)
	if err != nil {
		fail(w, unreadable(p.trip.grant, r.URL.Host, err))
		return
	}
	n.Scheme = tunnelScheme(p.trip.grant, n)
	far, err := p.reach(n, f)
	if err != nil {
		fail(w, err)
		return
	}
	defer far.Close()
	child, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the child is gone
	}
	defer child.Close()
	if _, err := io.WriteString(child, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// What the child said early is in the buffer; from there on the server's
	// reader is of no use: it takes the end of one direction for the end.
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	in := bufio.NewReader(io.MultiReader(bytes.NewReader(early), child))
	first, err := p.greet(n, child, in)
	if err != nil {
		return
	}
	p.tunnel(f, child, in, far, first)
}

// tunnelTarget returns what the CONNECT r leads to, without a scheme. It takes
// the target from the request line and refuses all that two readers could read
// differently.
func tunnelTarget(r *http.Request) (capability.Net, error) {
	bad := func(why string) (capability.Net, error) {
		return capability.Net{}, invalid("CONNECT: "+why+" (rule net_connect_target)", "want CONNECT HOST:PORT")
	}
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return bad("a body")
	}
	colon := strings.LastIndexByte(r.RequestURI, ':')
	if colon < 0 {
		return bad("the target is not a host and a port")
	}
	host, port := r.RequestURI[:colon], r.RequestURI[colon+1:]
	v, err := strconv.ParseUint(port, 10, 16)
	if err != nil || v == 0 || strconv.FormatUint(v, 10) != port {
		return bad("the port is not one of 1 to 65535")
	}
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return bad("an IPv6 address without brackets")
	}
	n := capability.Net{Port: uint16(v)}
	if n.Host, n.IP, err = capability.ParseHost(host); err != nil {
		return bad(err.Error())
	}
	return n, nil
}

// tunnelScheme returns as what a tunnel to n is judged: "tcp", opaque bytes,
// if some layer of g says tcp:// about n and nothing speaks against it, else
// "https". An entry without a scheme would do for the language; but who writes
// "example.com" means its web server, and does not expect another protocol.
func tunnelScheme(g capability.Grant, n capability.Net) string {
	tcp, https := n, n
	tcp.Scheme, https.Scheme = "tcp", "https"
	acc := access(tcp)
	said := slices.ContainsFunc(g.Layers(), func(l capability.Layer) bool {
		return slices.ContainsFunc(l.Allow, func(c capability.Capability) bool {
			return strings.HasPrefix(c.Pattern, "tcp://") && c.Covers(acc)
		})
	})
	if said && (g.Allows(acc) || !g.Allows(access(https))) {
		return "tcp"
	}
	return "https"
}

// reach judges a tunnel to n and connects to one of its addresses.
func (p *pass) reach(n capability.Net, f *flow) (net.Conn, error) {
	g := p.trip.grant
	if bindsTo(p.bound, n) {
		return nil, deny(g, n, "net_secret_in_tunnel", "a secret is bound to this host, and nobody can add it inside of a tunnel", "ask through the host's own http.request")
	}
	ctx, cancel := context.WithTimeout(f.ctx, p.exit.bounds.reach)
	defer cancel()
	h, err := p.trip.way(ctx, n, false)
	if err != nil {
		return nil, aboutMethods(err, g, n)
	}
	f.holds(h.needs)
	conn, err := p.exit.broker.race(ctx, h.addrs, h.port)
	if err != nil {
		return nil, failure(ctx, n, err, false)
	}
	return conn, nil
}

// bindsTo reports whether an entry of s is about n, whatever its methods.
func bindsTo(s capability.Set, n capability.Net) bool {
	n.Scheme = "https"
	return slices.ContainsFunc(s, func(c capability.Capability) bool { return c.Covers(access(n)) || coversMethod(c, n) })
}

// coversMethod reports whether c allows n for some method only.
func coversMethod(c capability.Capability, n capability.Net) bool {
	methods, _, ok := strings.Cut(c.Pattern, " ")
	n.Method, _, _ = strings.Cut(methods, ",")
	return ok && c.Covers(access(n))
}

// aboutMethods explains err, with which g refused a tunnel to n, if what
// stands against it is that an entry names methods.
func aboutMethods(err error, g capability.Grant, n capability.Net) error {
	var e *sdk.Error
	if n.Scheme != "https" || !errors.As(err, &e) || e.Kind != sdk.Denied {
		return err
	}
	acc := access(n)
	if !slices.ContainsFunc(g.Layers(), func(l capability.Layer) bool {
		return speaks(l) && !l.Allow.Covers(acc) && slices.ContainsFunc(l.Allow, func(c capability.Capability) bool { return coversMethod(c, n) })
	}) {
		return err
	}
	told := *e
	told.What += ": its entry names methods, which nobody can see inside of a tunnel (rule net_method_in_tunnel)"
	told.Hint = "ask through the host's own http.request; or " + told.Hint
	return &told
}

// greet reads what a tunnel to n has to start with, and returns it. A TLS
// client is told in its own language that it is refused.
func (p *pass) greet(n capability.Net, child net.Conn, in *bufio.Reader) ([]byte, error) {
	if n.Scheme == "tcp" {
		return nil, nil
	}
	_ = child.SetReadDeadline(time.Now().Add(p.exit.bounds.head))
	first, name, err := readHello(in)
	if err == nil {
		err = judgeName(n, name)
	}
	var b *breach
	if errors.As(err, &b) {
		err = deny(p.trip.grant, n, b.rule, b.why, b.hint)
		if len(first) > 0 {
			_, _ = child.Write(accessDenied)
		}
	}
	_ = child.SetReadDeadline(time.Time{})
	return first, err
}

// tunnel carries bytes between the child and far, first those of first, until
// both have said that they will write no more, or one of them is gone.
func (p *pass) tunnel(f *flow, child net.Conn, in io.Reader, far net.Conn, first []byte) {
	defer context.AfterFunc(f.ctx, func() { far.Close() })()
	if err := p.spend(&p.sent, len(first)); err != nil {
		return
	}
	if _, err := far.Write(first); err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() { p.pump(f, far, &meter{ReadCloser: io.NopCloser(in), pass: p, flow: f, total: &p.sent}) })
	p.pump(f, child, &meter{ReadCloser: far, pass: p, flow: f, total: &p.got})
	up.Wait()
}

// pump copies src to dst and then closes that direction. On any error nothing
// can be said to either side but that it is over.
func (p *pass) pump(f *flow, dst net.Conn, src *meter) {
	err := copyAll(writer(func(b []byte) (int, error) {
		n, err := dst.Write(b)
		f.touch()
		return n, err
	}), src)
	if err == nil {
		err = closeWrite(dst)
	}
	if err != nil {
		f.cut(err)
	}
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// copyAll copies src to dst until its end.
func copyAll(dst io.Writer, src io.Reader) error {
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	_, err := io.CopyBuffer(dst, src, buf[:])
	return err
}
