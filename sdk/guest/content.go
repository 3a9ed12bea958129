package guest

import "github.com/skillhost/skill/sdk"

// What a tool can answer beside structured content. Members such as Audience,
// Priority and Modified may be set on what these return; in a prompt's message
// also Role.

// Text is a text.
func Text(s string) sdk.Content { return sdk.Content{Type: sdk.TypeText, Text: s} }

// Image is an image, such as one of the type "image/png".
func Image(data []byte, mime string) sdk.Content {
	return sdk.Content{Type: sdk.TypeImage, Data: some(data), MIME: mime}
}

// Audio is a sound, such as one of the type "audio/wav".
func Audio(data []byte, mime string) sdk.Content {
	return sdk.Content{Type: sdk.TypeAudio, Data: some(data), MIME: mime}
}

// Document is a resource with its text. In the answer to a read without a uri,
// it is the resource that is read.
func Document(uri, mime, text string) sdk.Content {
	return sdk.Content{Type: sdk.TypeResource, URI: uri, MIME: mime, Text: text}
}

// Blob is a resource with its bytes.
func Blob(uri, mime string, data []byte) sdk.Content {
	return sdk.Content{Type: sdk.TypeResource, URI: uri, MIME: mime, Data: some(data)}
}

// Link points to a resource, which a client may read.
func Link(uri, name string) sdk.Content {
	return sdk.Content{Type: sdk.TypeResourceLink, URI: uri, Name: name}
}

// Says makes c a message of a prompt: role is "user" or "assistant".
func Says(role string, c sdk.Content) sdk.Content {
	c.Role = role
	return c
}

// some is data, and not nil: bytes that are none are still bytes, not a text.
func some(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}
