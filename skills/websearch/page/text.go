package page

import (
	"bytes"
	"unicode/utf8"
)

// appendText adds text to dst: character references undone, blanks collapsed,
// what is not UTF-8 replaced.
func appendText(dst, text []byte) []byte {
	for len(text) > 0 {
		c := text[0]
		switch {
		case isSpace(c):
			dst = appendBlank(dst)
			text = text[1:]
		case c == '&':
			r, n := reference(text)
			if r == 0 {
				dst, text = append(dst, '&'), text[1:]
				continue
			}
			text = text[n:]
			if r == 0xA0 || r < 0x80 && isSpace(byte(r)) {
				dst = appendBlank(dst)
				continue
			}
			dst = utf8.AppendRune(dst, r)
		case c < utf8.RuneSelf:
			n := 1
			for n < len(text) && text[n] != '&' && text[n] < utf8.RuneSelf && !isSpace(text[n]) {
				n++
			}
			dst, text = append(dst, text[:n]...), text[n:]
		default:
			r, n := utf8.DecodeRune(text)
			if r == 0xA0 {
				dst = appendBlank(dst)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
			text = text[n:]
		}
	}
	return dst
}

func appendBlank(dst []byte) []byte {
	if n := len(dst); n == 0 || dst[n-1] == ' ' {
		return dst
	}
	return append(dst, ' ')
}

// unescape adds v to dst with its character references undone.
func unescape(dst, v []byte) []byte {
	for {
		i := bytes.IndexByte(v, '&')
		if i < 0 {
			return append(dst, v...)
		}
		dst, v = append(dst, v[:i]...), v[i:]
		if r, n := reference(v); r != 0 {
			dst, v = utf8.AppendRune(dst, r), v[n:]
		} else {
			dst, v = append(dst, '&'), v[1:]
		}
	}
}

// maxReference is the longest name of a reference that is known, with "&" and ";".
const maxReference = 10

// reference reads the character reference that b begins with; 0 says that
// there is none, or that it is not known here and stays as it is.
func reference(b []byte) (r rune, n int) {
	if len(b) > 2 && b[1] == '#' {
		return numeric(b)
	}
	end := bytes.IndexByte(b[:min(len(b), maxReference)], ';')
	if end < 2 {
		return 0, 0
	}
	return named[string(b[1:end])], end + 1
}

// numeric reads "&#38;" or "&#x26;".
func numeric(b []byte) (r rune, n int) {
	n, base := 2, rune(10)
	if b[2]|0x20 == 'x' {
		n, base = 3, 16
	}
	begin := n
	for ; n < len(b); n++ {
		d := rune(-1)
		switch c := b[n]; {
		case '0' <= c && c <= '9':
			d = rune(c - '0')
		case base == 16 && 'a' <= c|0x20 && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		}
		if d < 0 {
			break
		}
		r = min(r*base+d, utf8.MaxRune+1)
	}
	if n == begin {
		return 0, 0
	}
	if n < len(b) && b[n] == ';' {
		n++
	}
	if r == 0 || r > utf8.MaxRune || 0xD800 <= r && r <= 0xDFFF {
		r = utf8.RuneError
	}
	return r, n
}

// named are the references that results are written with. The whole list of
// HTML has 2231, which would cost more than reading the page.
var named = map[string]rune{
	"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\'', "nbsp": 0xA0,
	"hellip": '…', "mdash": '—', "ndash": '–', "middot": '·', "bull": '•', "raquo": '»', "laquo": '«', "rsquo": '’', "lsquo": '‘',
	"rdquo": '”', "ldquo": '“', "copy": '©', "reg": '®', "trade": '™', "times": '×', "euro": '€', "pound": '£', "deg": '°', "sect": '§',
	"rarr": '→', "larr": '←', "ensp": ' ', "emsp": ' ', "thinsp": ' ', "zwnj": 0x200C, "zwj": 0x200D, "shy": 0xAD, "para": '¶', "plusmn": '±',
	"agrave": 'à', "aacute": 'á', "acirc": 'â', "atilde": 'ã', "auml": 'ä', "aring": 'å', "aelig": 'æ', "ccedil": 'ç',
	"egrave": 'è', "eacute": 'é', "ecirc": 'ê', "euml": 'ë', "igrave": 'ì', "iacute": 'í', "icirc": 'î', "iuml": 'ï',
	"ntilde": 'ñ', "ograve": 'ò', "oacute": 'ó', "ocirc": 'ô', "otilde": 'õ', "ouml": 'ö', "oslash": 'ø', "ugrave": 'ù', "uacute": 'ú', "ucirc": 'û', "uuml": 'ü',
	"yacute": 'ý', "yuml": 'ÿ', "szlig": 'ß', "eth": 'ð', "thorn": 'þ',
	"Agrave": 'À', "Aacute": 'Á', "Acirc": 'Â', "Atilde": 'Ã', "Auml": 'Ä', "Aring": 'Å', "AElig": 'Æ', "Ccedil": 'Ç',
	"Egrave": 'È', "Eacute": 'É', "Ecirc": 'Ê', "Euml": 'Ë', "Igrave": 'Ì', "Iacute": 'Í', "Icirc": 'Î', "Iuml": 'Ï',
	"Ntilde": 'Ñ', "Ograve": 'Ò', "Oacute": 'Ó', "Ocirc": 'Ô', "Otilde": 'Õ', "Ouml": 'Ö', "Oslash": 'Ø', "Ugrave": 'Ù', "Uacute": 'Ú', "Ucirc": 'Û', "Uuml": 'Ü',
}
