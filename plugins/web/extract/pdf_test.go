package extract

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(PDFKey) != "" {
		os.Exit(ReadPDF(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// document is a PDF of objects, of which the first is the catalog.
func document(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref)
	return b.Bytes()
}

const (
	catalog = "<< /Type /Catalog /Pages 2 0 R >>"
	font    = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
	page    = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 4 0 R >> >> /Contents %d 0 R >>"
)

func stream(dict string, data []byte) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(data), dict, data)
}

// single is a PDF of one page with a content stream.
func single(content string) []byte {
	return document(catalog, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", fmt.Sprintf(page, 5), font, content)
}

func read(t *testing.T, b []byte) (string, int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return patience{1, time.Minute}.read(ctx, b, "/proc/self/exe", nil)
}

func TestPDF(t *testing.T) {
	text, pages, err := read(t, single(stream("", []byte("BT /F1 12 Tf 72 720 Td (The first line) Tj 0 -14 Td (and the second) Tj 0 -40 Td (another paragraph) Tj ET"))))
	if err != nil || pages != 1 || text != "The first line\nand the second\n\nanother paragraph\n" {
		t.Errorf("%q, %d pages, %v", text, pages, err)
	}
}

// bomb is so many zeros, packed.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	for chunk := bytes.Repeat([]byte(" "), 1<<20); size > 0; size -= len(chunk) {
		if _, err := z.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestHostilePDF: whatever a document does to its reader, it is over soon, and
// the reader's caller is as before.
func TestHostilePDF(t *testing.T) {
	good := single(stream("", []byte("BT /F1 12 Tf (x) Tj ET")))
	for name, b := range map[string][]byte{
		"empty":             {},
		"no pdf":            []byte("%PDF-1.4 and then nothing"),
		"truncated":         good[:len(good)/2],
		"flate bomb":        single(stream("/Filter /FlateDecode", bomb(t, 1<<29))),
		"bomb in a bomb":    single(stream("/Filter [/FlateDecode /FlateDecode]", bomb(t, 1<<26))),
		"pages in a circle": document(catalog, "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000000 >>"),
		"length is itself":  single("<< /Length 5 0 R >>\nstream\nBT ET\nendstream"),
		"xref to itself":    bytes.Replace(good, []byte("/Root 1 0 R"), []byte("/Root 1 0 R /Prev 9"), 1),
		"deep":              document(catalog, strings.Repeat("[", 1<<20)),
		"stack":             single(stream("", []byte(strings.Repeat("<< /a ", 1<<18)))),
		"font of nothing":   bytes.Replace(good, []byte("/F1 4 0 R"), []byte("/F1 9 0 R"), 1),
		"endless text":      single(stream("", []byte("BT /F1 12 Tf "+strings.Repeat("(text) Tj ", 1<<14)))),
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			text, _, err := read(t, b)
			if len(text) > pdfText {
				t.Errorf("%d bytes of text", len(text))
			}
			if took := time.Since(began); took > 90*time.Second {
				t.Errorf("it took %v: %v", took, err)
			}
			t.Logf("%d bytes, %v", len(text), err)
		})
	}
	if _, pages, err := read(t, good); err != nil || pages != 1 {
		t.Error(err)
	}
}

func TestPDFEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := PDF(ctx, single(stream("", nil)), "/proc/self/exe"); err == nil {
		t.Error("it is read though nobody waits for it")
	}
	if _, _, err := PDF(t.Context(), nil, "/nowhere"); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Error(err)
	}
}
