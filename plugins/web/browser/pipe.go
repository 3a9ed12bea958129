package browser

import (
	"errors"
	"io"

	"github.com/chromedp/chromedp"
)

// maxMessage bounds one message of the browser, bytes: a page decides how long
// some of them are, such as the text of a dialog. A larger one ends the
// browser.
const maxMessage = 64 << 20

// newPipe returns the connection to a browser over its two pipes, with a bound
// on what it may say at once.
func newPipe(in io.WriteCloser, out io.ReadCloser) chromedp.Transport {
	return chromedp.NewPipeConn(&bound{ReadCloser: out}, in)
}

// A bound is a reader of messages that end with a NUL.
type bound struct {
	io.ReadCloser
	size int // of the message so far
}

var errLarge = errors.New("the browser sent more at once than is read")

func (b *bound) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	for i := n - 1; i >= 0; i-- {
		if to[i] == 0 {
			b.size = n - 1 - i
			return n, err
		}
	}
	if b.size += n; b.size > maxMessage {
		return 0, errLarge
	}
	return n, err
}
