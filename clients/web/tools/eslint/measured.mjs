// The project's own rules: what the types of src/state/figure.ts cannot prevent. A value that no service measured
// must not be made up on the way to the page.

/** Returns the type of a node as TypeScript has it. */
function typeOf(context, node) {
  const { program, esTreeNodeToTSNodeMap } = context.sourceCode.parserServices;
  return program.getTypeChecker().getTypeAtLocation(esTreeNodeToTSNodeMap.get(node));
}

/** Reports whether an expression is what a query answered: a result of TanStack has dataUpdatedAt. */
function isAnswer(context, node) {
  return node.type === 'MemberExpression' && node.property.name === 'data' && hasMember(context, node.object);
}

const hasMember = (context, node) => typeOf(context, node).getProperty('dataUpdatedAt') !== undefined;

/** Reports whether an expression goes down from an answer: query.data, query.data?.inbox.count. */
function fromAnswer(context, node) {
  for (let at = node; at;) {
    if (isAnswer(context, at)) return true;
    switch (at.type) {
      case 'ChainExpression':
      case 'TSNonNullExpression':
        at = at.expression;
        break;
      case 'MemberExpression':
        at = at.object;
        break;
      case 'CallExpression':
        at = at.callee;
        break;
      default:
        return false;
    }
  }
  return false;
}

/** Reports whether an expression is 0, '', [] or a constant that holds one. */
function isNothing(context, node) {
  switch (node.type) {
    case 'Literal':
      return node.value === 0 || node.value === '' || node.value === false;
    case 'ArrayExpression':
      return node.elements.length === 0;
    case 'TSAsExpression':
      return isNothing(context, node.expression);
    case 'Identifier': {
      for (let scope = context.sourceCode.getScope(node); scope; scope = scope.upper) {
        const definition = scope.set.get(node.name)?.defs[0]?.node;
        if (definition)
          return definition.type === 'VariableDeclarator' && !!definition.init && isNothing(context, definition.init);
      }
      return false;
    }
    default:
      return false;
  }
}

/** `query.data?.rows ?? []`: a service without an answer has not reported "none". */
const noMadeUpValue = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      madeUp: 'A service without an answer has not reported {{value}}: use read() or orElse() of state/figure.',
    },
  },
  create: (context) => ({
    LogicalExpression(node) {
      if (node.operator !== '??' && node.operator !== '||') return;
      if (isNothing(context, node.right) && fromAnswer(context, node.left))
        context.report({ node, messageId: 'madeUp', data: { value: context.sourceCode.getText(node.right) } });
    },
  }),
};

/** Reports whether an expression is true of an empty list: x.length === 0, !x.length, x.length < 1, !list.some(…). */
function isEmptyTest(node) {
  if (node.type === 'UnaryExpression' && node.operator === '!') return isLength(node.argument);
  if (node.type === 'LogicalExpression') return isEmptyTest(node.left) || isEmptyTest(node.right);
  if (node.type !== 'BinaryExpression') return false;
  const { left, operator, right } = node;
  return (
    isLength(left) &&
    right.type === 'Literal' &&
    ((right.value === 0 && /^={2,3}$/.test(operator)) || (right.value === 1 && operator === '<'))
  );
}

function isLength(node) {
  const at = node.type === 'ChainExpression' ? node.expression : node;
  return at.type === 'MemberExpression' && ['length', 'size'].includes(at.property.name);
}

/** Components that show their content only where it was measured, or state that it was not. */
const guarded = new Set([
  'Blank',
  'Message',
  'Show',
  'Evidence',
  'NotMeasured',
  'UnmeasuredBlank',
  'ErrorBlank',
  'Skeleton',
  'QueryPanel',
  'FigurePanel',
]);

/** Reports whether an element has one of those components in it, however deep. */
function isGuarded(context, node) {
  if (node.type === 'JSXElement' && guarded.has(node.openingElement.name.name)) return true;
  return (context.sourceCode.visitorKeys[node.type] ?? []).some((key) =>
    [node[key]].flat().some((child) => child && isGuarded(context, child)),
  );
}

/** An empty list shown as a sentence of its own: only Blank, which takes the figure, may say that there is nothing. */
const noBareEmptiness = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { bare: 'Show emptiness with <Blank of={figure}>: it says "none" only where that was measured.' },
  },
  create(context) {
    const check = (test, shown) => {
      if (!isEmptyTest(test) || shown.type !== 'JSXElement') return;
      const { name } = shown.openingElement;
      // What another component shows is its own affair; an element of HTML is a sentence.
      if (name.type === 'JSXIdentifier' && /^[a-z]/.test(name.name) && !isGuarded(context, shown))
        context.report({ node: shown, messageId: 'bare' });
    };
    return {
      ConditionalExpression: (node) => check(node.test, node.consequent),
      LogicalExpression: (node) => node.operator === '&&' && check(node.left, node.right),
    };
  },
};

/** A tick of its own: State, Pill and GateList show one only within a figure that was measured. */
const noBareTick = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { tick: 'A tick is a claim: use State, Pill or GateList, which draw it only within a measured figure.' },
  },
  create: (context) => ({
    JSXOpeningElement(node) {
      if (node.name.name !== 'Icon') return;
      const name = node.attributes.find((attribute) => attribute.name?.name === 'name')?.value;
      const value = name?.type === 'JSXExpressionContainer' ? name.expression : name;
      if (value && mayBeTick(value)) context.report({ node, messageId: 'tick' });
    },
  }),
};

function mayBeTick(node) {
  if (node.type === 'Literal') return node.value === 'ok';
  if (node.type === 'ConditionalExpression') return mayBeTick(node.consequent) || mayBeTick(node.alternate);
  return false;
}

export default {
  rules: { 'no-made-up-value': noMadeUpValue, 'no-bare-emptiness': noBareEmptiness, 'no-bare-tick': noBareTick },
};
