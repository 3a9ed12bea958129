package main

import (
	"bytes"
	"encoding/binary"
)

// orientation reads the EXIF orientation of an image, 1 (as it is) to 8. What
// is absent or malformed is 1.
func orientation(k kind, data []byte) int {
	var exif []byte
	switch k {
	case kindTIFF:
		exif = data
	case kindJPEG:
		exif = jpegExif(data)
	case kindPNG:
		exif = pngExif(data)
	case kindWebP:
		chunks(data[12:], func(id string, body []byte) bool {
			if id == "EXIF" {
				exif = bytes.TrimPrefix(body, exifHeader)
			}
			return id != "EXIF"
		})
	}
	return tiffOrientation(exif)
}

var exifHeader = []byte("Exif\x00\x00")

// jpegExif returns the TIFF structure in the first APP1 segment that has one.
func jpegExif(b []byte) []byte {
	for b = b[2:]; len(b) >= 4 && b[0] == 0xff; {
		marker, n := b[1], int(binary.BigEndian.Uint16(b[2:]))
		if marker == 0xff { // a fill byte
			b = b[1:]
			continue
		}
		if marker == 0xda || n < 2 || 2+n > len(b) { // the picture begins
			return nil
		}
		if body := b[4 : 2+n]; marker == 0xe1 && bytes.HasPrefix(body, exifHeader) {
			return body[len(exifHeader):]
		}
		b = b[2+n:]
	}
	return nil
}

func pngExif(b []byte) []byte {
	for b = b[8:]; len(b) >= 12; {
		n := uint64(binary.BigEndian.Uint32(b))
		if n+12 > uint64(len(b)) || string(b[4:8]) == "IEND" {
			return nil
		}
		if string(b[4:8]) == "eXIf" {
			return b[8 : 8+n]
		}
		b = b[12+n:]
	}
	return nil
}

// tiffOrientation reads tag 274 of the first directory.
func tiffOrientation(b []byte) int {
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return 1
	}
	n, b := int(order.Uint16(b[at:])), b[at+2:]
	for ; n > 0 && len(b) >= 12; n, b = n-1, b[12:] {
		if order.Uint16(b) != 274 {
			continue
		}
		if v := order.Uint16(b[8:]); v >= 1 && v <= 8 && order.Uint16(b[2:]) == 3 {
			return int(v)
		}
		return 1
	}
	return 1
}
