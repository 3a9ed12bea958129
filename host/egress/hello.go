package egress

import (
	"io"
	"strings"

	"github.com/skillhost/skill/host/capability"
)

// Bounds of a ClientHello. Post-quantum key shares make it a few KiB.
const (
	maxHello  = 32 << 10 // bytes of the message
	maxRecord = 16 << 10 // bytes of a TLS record
)

// accessDenied is a fatal TLS alert, which a client can show to people.
var accessDenied = []byte{21, 3, 3, 0, 2, 2, 49}

// readHello reads the first TLS message of a client, which may be spread over
// records and segments, and returns all bytes that it read and the server name
// of a ClientHello, or "". It reads nothing past the message. What is not
// exactly one ClientHello is a *breach; the bytes are then returned only if a
// TLS client sent them. Encrypted Client Hello has two
// names; the outer one is meant, which is all that can be seen.
func readHello(r io.Reader) (raw []byte, name string, err error) {
	var kind [1]byte
	if _, err := io.ReadFull(r, kind[:]); err != nil {
		return nil, "", err
	}
	if kind[0] != 22 {
		return nil, "", &breach{"net_not_tls", "what was sent first is not TLS", "only TLS passes here; other protocols need a tcp:// entry"}
	}
	raw = append(raw, kind[0])
	var msg []byte
	for {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, "", err
		}
		raw = append(raw, head[:]...)
		n := int(head[2])<<8 | int(head[3])
		if head[0] != 3 || n == 0 || n > maxRecord || len(msg)+n > maxHello {
			return raw, "", badHello("a record that is malformed or too long")
		}
		at := len(raw)
		raw = append(raw, make([]byte, n)...)
		if _, err := io.ReadFull(r, raw[at:]); err != nil {
			return nil, "", err
		}
		msg = append(msg, raw[at:]...)
		switch need, known := helloLength(msg); {
		case msg[0] != 1:
			return raw, "", badHello("the first message is not a ClientHello")
		case known && (need > maxHello || len(msg) > need):
			return raw, "", badHello("a ClientHello that is too long, or more than one message")
		case known && len(msg) == need:
			name, err = serverName(msg[4:])
			return raw, name, err
		}
		if _, err := io.ReadFull(r, kind[:]); err != nil {
			return nil, "", err
		}
		raw = append(raw, kind[0])
		if kind[0] != 22 {
			return raw, "", badHello("another record inside of the ClientHello")
		}
	}
}

// helloLength returns how long the handshake message that msg begins is with
// its header, if msg has the header.
func helloLength(msg []byte) (n int, known bool) {
	if len(msg) < 4 {
		return 0, false
	}
	return 4 + int(msg[1])<<16 + int(msg[2])<<8 + int(msg[3]), true
}

// A breach is a rule that the start of a tunnel breaks.
type breach struct{ rule, why, hint string }

func (b *breach) Error() string { return b.why }

func badHello(why string) error { return &breach{"net_bad_client_hello", why, ""} }

// serverName returns the server name in the body of a ClientHello, or "". A
// hello that two readers could read differently is refused: one with anything
// twice, or left over.
func serverName(body []byte) (string, error) {
	b := field(body)
	ok := b.skip(2 + 32)                   // version, random
	for _, width := range []int{1, 2, 1} { // session, cipher suites, compression
		_, has := b.vector(width)
		ok = ok && has
	}
	if !ok {
		return "", badHello("a ClientHello that is cut short")
	}
	if len(b) == 0 {
		return "", nil // as before there were extensions
	}
	list, ok := b.vector(2)
	if !ok || len(b) > 0 {
		return "", badHello("malformed extensions")
	}
	seen := map[int]bool{}
	name := ""
	for len(list) > 0 {
		kind, has := list.number(2)
		ext, whole := list.vector(2)
		if !has || !whole || seen[kind] {
			return "", badHello("malformed or repeated extensions")
		}
		seen[kind] = true
		if kind != 0 {
			continue
		}
		names, one := ext.vector(2)
		form, typed := names.number(1)
		text, has := names.vector(2)
		if !one || !typed || !has || form != 0 || len(ext)+len(names) > 0 || len(text) == 0 {
			return "", badHello("a malformed list of server names")
		}
		name = string(text)
	}
	return name, nil
}

// judgeName refuses a server name that is not the host of n.
func judgeName(n capability.Net, name string) error {
	if name == "" {
		if n.IP.IsValid() {
			return nil
		}
		return &breach{"net_no_sni", "the TLS client names no server", "turn on SNI, with the name that CONNECT has"}
	}
	host, ip, err := capability.ParseHost(name)
	if err != nil || host != n.Host || ip != n.IP || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return &breach{"net_sni", "the TLS client names another server than CONNECT did", ""}
	}
	return nil
}

// A field is the rest of a message in the presentation language of RFC 8446.
type field []byte

func (f *field) skip(n int) bool {
	if len(*f) < n {
		return false
	}
	*f = (*f)[n:]
	return true
}

// number takes an integer of width bytes.
func (f *field) number(width int) (int, bool) {
	if len(*f) < width {
		return 0, false
	}
	n := 0
	for _, b := range (*f)[:width] {
		n = n<<8 | int(b)
	}
	*f = (*f)[width:]
	return n, true
}

// vector takes a vector whose length is written in width bytes.
func (f *field) vector(width int) (field, bool) {
	n, ok := f.number(width)
	if !ok || len(*f) < n {
		return nil, false
	}
	v := (*f)[:n]
	*f = (*f)[n:]
	return v, true
}
