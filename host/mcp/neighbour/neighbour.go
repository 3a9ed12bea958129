// Package neighbour keeps a loopback listener to one user: a port of the
// loopback can be reached by every user of the machine, and who is at the other
// end is for the kernel to say. Where it does not (all but Linux), nobody is
// turned away. The package does not know what is said over a connection.
package neighbour

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

// maxAnswered bounds the connections that are being told why they are turned
// away. Others are closed without a word: a neighbour that comes often must not
// take what the user needs.
const maxAnswered = 16

// Only returns a listener that turns away connections of other users than uid
// and root: answer is written to them. turned is told of the n connections that
// were turned away since it was told before, and who the last one was; that is
// once in a second at most. l listens on a loopback address.
func Only(l net.Listener, uid int, answer string, turned func(who string, n int)) net.Listener {
	return &listener{Listener: l, uid: uid, answer: answer, answered: make(chan struct{}, maxAnswered), owner: owner,
		tally: tally{every: time.Second, tell: turned}}
}

type listener struct {
	net.Listener
	uid      int
	answer   string
	answered chan struct{} // holds one for each connection that is being answered
	owner    func(net.Conn) (int, error)
	tally    tally
}

// Accept returns the next connection that is not turned away.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, err := l.owner(c)
		if err == nil && (who == l.uid || who == 0 || who == anybody) {
			return c, nil
		}
		name := fmt.Sprintf("user %d", who)
		if err != nil { // it is gone, or cannot be told: not served
			name = err.Error()
		}
		l.tally.add(name)
		select {
		case l.answered <- struct{}{}:
			go l.refuse(c)
		default:
			c.Close()
		}
	}
}

// Close tells what was not told yet.
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.tally.close()
	return err
}

// refuse answers, and waits a little for the other end to read that.
func (l *listener) refuse(c net.Conn) {
	defer func() { <-l.answered }()
	defer c.Close()
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return
	}
	var b [4096]byte
	_, _ = c.Read(b[:]) // a request that is not read makes the answer a reset
	_, _ = c.Write([]byte(l.answer))
}

// anybody is the owner of a connection where that cannot be told.
const anybody = -1

// ends returns both ends of a connection, as this end sees them.
func ends(c net.Conn) (here, there netip.AddrPort, err error) {
	if here, err = netip.ParseAddrPort(c.LocalAddr().String()); err != nil {
		return
	}
	there, err = netip.ParseAddrPort(c.RemoteAddr().String())
	return
}
