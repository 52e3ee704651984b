import type { ReactNode } from 'react';
import {
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  NumberField as AriaNumberField,
  Popover,
  Select as AriaSelect,
  SelectValue,
  Switch as AriaSwitch,
  Text,
  TextArea as AriaTextArea,
  TextField as AriaTextField,
  type TextFieldProps as AriaTextFieldProps,
} from 'react-aria-components';
import { Button as AriaButton } from 'react-aria-components';
import { Icon, type IconName } from './icon';

interface Described {
  label: string;
  /** Hides the label visually where the context makes it clear. */
  quietLabel?: boolean;
  hint?: ReactNode;
  error?: string;
}

export interface TextFieldProps extends Described, Omit<AriaTextFieldProps, 'children' | 'className' | 'style'> {
  icon?: IconName;
  placeholder?: string;
  large?: boolean;
  suffix?: ReactNode;
  inputRef?: React.Ref<HTMLInputElement>;
}

export function TextField({
  label,
  quietLabel,
  hint,
  error,
  icon,
  placeholder,
  large,
  suffix,
  inputRef,
  ...rest
}: TextFieldProps) {
  return (
    <AriaTextField {...rest} className="field" isInvalid={error !== undefined}>
      <Label className={quietLabel ? 'vh' : undefined}>{label}</Label>
      <span className={large ? 'input lg' : 'input'}>
        {icon && <Icon name={icon} small />}
        <Input placeholder={placeholder} ref={inputRef} />
        {suffix}
      </span>
      {hint && (
        <Text slot="description" className="small faint">
          {hint}
        </Text>
      )}
      <FieldError className="small st-critical">{error}</FieldError>
    </AriaTextField>
  );
}

export function TextArea({
  label,
  quietLabel,
  hint,
  error,
  placeholder,
  rows = 3,
  ...rest
}: Described & Omit<AriaTextFieldProps, 'children' | 'className' | 'style'> & { placeholder?: string; rows?: number }) {
  return (
    <AriaTextField {...rest} className="field" isInvalid={error !== undefined}>
      <Label className={quietLabel ? 'vh' : undefined}>{label}</Label>
      <AriaTextArea className="textarea" placeholder={placeholder} rows={rows} />
      {hint && (
        <Text slot="description" className="small faint">
          {hint}
        </Text>
      )}
      <FieldError className="small st-critical">{error}</FieldError>
    </AriaTextField>
  );
}

export function NumberField({
  label,
  hint,
  error,
  unit,
  value,
  onChange,
  min,
  max,
  step,
}: Described & {
  unit?: string;
  value: number;
  onChange: (value: number) => void;
  min?: number;
  max?: number;
  step?: number;
}) {
  return (
    <AriaNumberField
      className="field"
      value={value}
      onChange={onChange}
      minValue={min}
      maxValue={max}
      step={step}
      isInvalid={error !== undefined}
    >
      <Label>{label}</Label>
      <span className="input">
        <Input className="num" />
        {unit && <span className="faint">{unit}</span>}
      </span>
      {hint && (
        <Text slot="description" className="small faint">
          {hint}
        </Text>
      )}
      <FieldError className="small st-critical">{error}</FieldError>
    </AriaNumberField>
  );
}

export function Switch({
  label,
  isSelected,
  onChange,
  isDisabled,
}: {
  label: string;
  isSelected: boolean;
  onChange: (on: boolean) => void;
  isDisabled?: boolean;
}) {
  return (
    <AriaSwitch className="switcher" isSelected={isSelected} onChange={onChange} isDisabled={isDisabled}>
      <span className="switcher-track" aria-hidden="true" />
      {label}
    </AriaSwitch>
  );
}

export interface Option {
  id: string;
  label: string;
  detail?: string;
}

/** A choice of one among few. */
export function Select({
  label,
  quietLabel,
  options,
  value,
  onChange,
  placeholder,
}: Described & {
  options: readonly Option[];
  value: string | null;
  onChange: (value: string) => void;
  placeholder?: string;
}) {
  return (
    <AriaSelect
      className="field"
      selectedKey={value}
      onSelectionChange={(key) => key !== null && onChange(String(key))}
      placeholder={placeholder}
      aria-label={quietLabel ? label : undefined}
    >
      {!quietLabel && <Label>{label}</Label>}
      <AriaButton className="btn">
        <SelectValue>{({ selectedText, defaultChildren }) => selectedText || defaultChildren}</SelectValue>
        <Icon name="down" small />
      </AriaButton>
      <Popover className="popover" placement="bottom end">
        <ListBox className="menu" items={options}>
          {(option) => (
            <ListBoxItem id={option.id} textValue={option.label} className="menu-i">
              {({ isSelected }) => (
                <>
                  <Icon name="check" small className={isSelected ? '' : 'ghosted'} />
                  <span className="grow">{option.label}</span>
                  {option.detail && <span className="faint small">{option.detail}</span>}
                </>
              )}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}
