"""The protocol of EC2, by botocore's model: a form in, XML out."""

import functools
import xml.sax.saxutils

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


@functools.cache
def operation(name):
    import botocore.session
    return botocore.session.get_session().get_service_model("ec2").operation_model(name)


def parse(action, form):
    """The parameters of a request, by the names of the model."""
    return structure(operation(action).input_shape, form, "")


def structure(shape, form, prefix):
    found = {}
    for name, member in shape.members.items():
        key = member.serialization.get("queryName") or member.serialization.get("name", name)
        value = parsed(member, form, prefix + key[0].upper() + key[1:])
        if value is not None:
            found[name] = value
    return found


def parsed(shape, form, key):
    if shape.type_name == "structure":
        return structure(shape, form, key + ".") or None
    if shape.type_name == "list":
        values = []
        while (value := parsed(shape.member, form, f"{key}.{len(values) + 1}")) is not None:
            values.append(value)
        return values or None
    text = form.get(key)
    if text is None:
        return None
    if shape.type_name == "boolean":
        return text.lower() == "true"
    return int(text) if shape.type_name in ("integer", "long") else text


def answer(action, result, number):
    shape = operation(action).output_shape
    inner = "".join(element(shape, result)) if shape else "<return>true</return>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{NAMESPACE}"><requestId>{number}</requestId>{inner}</{action}Response>'.encode()


def element(shape, value):
    """Contents of a value's element."""
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if value.get(name) is not None:
                key = member.serialization.get("name", name)
                yield f"<{key}>{''.join(element(member, value[name]))}</{key}>"
    elif shape.type_name == "list":
        key = shape.member.serialization.get("name", "item")
        for one in value:
            yield f"<{key}>{''.join(element(shape.member, one))}</{key}>"
    elif shape.type_name == "boolean":
        yield "true" if value else "false"
    elif shape.type_name == "timestamp":
        yield value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    else:
        yield xml.sax.saxutils.escape(str(value))


def error(code, message, number):
    code, message = (xml.sax.saxutils.escape(text) for text in (code, message))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors><RequestID>{number}</RequestID></Response>'.encode()
